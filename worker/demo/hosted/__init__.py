"""Doubles of hosted providers, on loopback, that the unmodified SDKs drive. Real commands, no isolation."""
