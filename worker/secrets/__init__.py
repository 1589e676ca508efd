"""Sealed secrets, the key ring, GitHub App tokens, redaction."""
