"""`tool.dispatch`: a managed tool in a sandbox, never run twice by us if it writes."""
