"""Logs and Sentry: what operators see."""
