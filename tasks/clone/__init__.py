"""`sandbox.clone`: a repository into a sandbox."""
