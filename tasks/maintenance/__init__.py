"""The sweep: lapsed tasks, released and expired sandboxes."""
