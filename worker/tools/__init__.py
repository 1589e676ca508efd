"""Managed tools: what a package is, how it is named, kept and checked; knows nothing of sandboxes or of Celery."""
