"""Small files of a capture that come with the helper's answer: a command less in the sandbox for each."""

import re
from collections.abc import Iterator
from typing import Protocol

from worker.sandboxes.base import MEBIBYTE
from worker.sandboxes.deadline import Deadline
from worker.snapshots.format import MAX_PARTS
from worker.snapshots.paths import FormatError

MAX_HANDED = 4 * MEBIBYTE
"""Bytes of all files together, held in memory; a capture with more hands over none."""
MAX_LINES = 64 * (2 * MAX_PARTS + 2)
"""Bytes of the lines between them."""
_LINE = re.compile(rb"file (part-(?:0|[1-9][0-9]{0,3})\.(?:bundle|path)|empty\.z|omitted\.z) (0|[1-9][0-9]{0,7})\n")


class Files(Protocol):
    """What files are read from, a sandbox for one."""

    def read(self, path: str, *, deadline: Deadline, offset: int = 0) -> Iterator[bytes]:
        """See :meth:`worker.sandboxes.base.Sandbox.read`."""


class HandedOver:
    """The files of ``directory`` as ``files`` has them; what is in ``handed`` is read from there, but only once."""

    def __init__(self, files: Files, directory: str, handed: dict[str, bytes]) -> None:
        self._files = files
        self._handed = {f"{directory}/{name}": data for name, data in handed.items()}

    def read(self, path: str, *, deadline: Deadline, offset: int = 0) -> Iterator[bytes]:
        """Stream a file from ``offset`` bytes on."""
        data = self._handed.pop(path, None)
        return self._files.read(path, deadline=deadline, offset=offset) if data is None else iter([data[offset:]])


def parse_handed(data: bytes) -> dict[str, bytes]:
    """Read ``file <name> <size>`` lines, each with that many bytes after it.

    :raises FormatError: anything else, a name twice, more than :data:`MAX_HANDED` in all.
    """
    files: dict[str, bytes] = {}
    at = 0
    while at < len(data):
        line = _LINE.match(data, at)
        if line is None:
            raise FormatError("handed", "malformed")
        name, size = line[1].decode("ascii"), int(line[2])
        at = line.end() + size
        if name in files or at > len(data):
            raise FormatError("handed", "malformed")
        files[name] = data[line.end() : at]
    if sum(map(len, files.values())) > MAX_HANDED:
        raise FormatError("handed", "too_large")
    return files
