"""Attempt records, run events, diagnostics: what outlives a process."""
