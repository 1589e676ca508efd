"""Where a secret could have been left, and whether it was."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from worker.secrets.literals import forms
from worker.stores.redis import Client

MAX_FILE = 1024 * 1024
"""Bytes of a file that are looked at; the demo's own are far smaller."""


class ArgvWatch:
    """Samples the command lines of every process on the machine while its block runs (Linux)."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(0.02):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    self.seen.add(path.read_bytes())
                except OSError:
                    continue  # the process has ended in the meantime


def redis_bytes(client: Client) -> Iterator[bytes]:
    """Every key and value of a server."""
    readers: dict[str, Any] = {
        "string": client.get,
        "hash": client.hgetall,
        "list": lambda key: client.lrange(key, 0, -1),
        "set": client.smembers,
        "zset": lambda key: client.zrange(key, 0, -1, withscores=True),
        "stream": client.xrange,
    }
    for key in client.scan_iter(count=1000):
        read = readers.get(client.type(key))  # "none": it has expired since the scan
        if read is not None:
            yield f"{key} {read(key)}".encode()


def file_bytes(root: Path) -> Iterator[bytes]:
    """Every regular file beneath ``root``, ``.git/config`` among them."""
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as stream:
                yield stream.read(MAX_FILE)


def leaks(secrets: Iterator[str], sinks: dict[str, Iterator[bytes]]) -> list[str]:
    """Names of the sinks that hold a secret, in plain, base64, URL or JSON form."""
    needles = [form.encode() for secret in secrets for form in forms(secret)]
    return [name for name, chunks in sinks.items() if any(needle in chunk for chunk in chunks for needle in needles)]
