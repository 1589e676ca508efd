"""One way to turn a work tree into a git tree, without touching the git directory it belongs to."""
