"""Sandboxes as containers of a Docker engine. The SDK is imported by this folder only."""
