"""Files that go into a container: one tar archive, streamed from the worker's disk."""

import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO

from worker.sandboxes.base import MEBIBYTE

_BLOCK = 512
"""Bytes of a tar block (POSIX ustar)."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Numeric user and group inside the container."""

    uid: int = 0
    gid: int = 0


def spooled(data: bytes | Iterable[bytes]) -> IO[bytes]:
    """The data in a file, on disk above a mebibyte: a tar header needs the size before the content."""
    spool = tempfile.SpooledTemporaryFile(max_size=MEBIBYTE)  # noqa: SIM115 - the caller closes it
    for chunk in [data] if isinstance(data, bytes) else data:
        spool.write(chunk)
    return spool


def file_archive(name: str, file: IO[bytes], owner: Owner, mode: int) -> Iterator[bytes]:
    """A tar archive of one file."""
    size = file.seek(0, 2)
    file.seek(0)
    yield _header(name, owner, mode, size=size)
    while chunk := file.read(MEBIBYTE):
        yield chunk
    yield bytes(-size % _BLOCK + 2 * _BLOCK)


def directory_archive(modes: Mapping[str, int], owner: Owner) -> bytes:
    """A tar archive of directories with their modes."""
    entries = [_header(path.lstrip("/"), owner, mode, kind=tarfile.DIRTYPE) for path, mode in modes.items()]
    return b"".join(entries) + bytes(2 * _BLOCK)


def _header(name: str, owner: Owner, mode: int, *, size: int = 0, kind: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.size, info.mtime = kind, mode, size, int(time.time())
    info.uid, info.gid = owner.uid, owner.gid
    return info.tobuf(tarfile.PAX_FORMAT)
