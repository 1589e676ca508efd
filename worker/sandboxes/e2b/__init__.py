"""Sandboxes of E2B. The SDK is imported by this folder only, and never before a fork (ADR 0030)."""
