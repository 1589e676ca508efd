"""Ports for servers that bind them later: below those that the system gives to outgoing connections."""

import random
import socket

RANGE = range(20_000, 30_000)


def later_port() -> int:
    """A port of 127.0.0.1 that is free, and that nobody is given by chance before it is bound."""
    while True:
        port = random.choice(RANGE)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
