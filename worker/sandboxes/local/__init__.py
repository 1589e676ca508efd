"""Sandboxes as directories and subprocesses of this machine: for development and the demo, no isolation."""
