"""Sandboxes of Daytona. The SDK is imported by this folder only."""
