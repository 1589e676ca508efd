"""The demo: a broker, a GitHub double and a worker on this machine."""
