"""Files of the local driver: private, whole or absent, and removed without following a link."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

_CHUNK = 1024 * 1024
"""Bytes per read."""


def write_atomically(path: Path, chunks: Iterable[bytes], *, mode: int) -> None:
    """Write beside the file and rename over it; a failure leaves what was there."""
    fd, name = tempfile.mkstemp(prefix=".sandferry-", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(fd, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
            os.fchmod(file.fileno(), mode)
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_from(path: Path, offset: int) -> Iterator[bytes]:
    """Chunks of a file from ``offset`` on."""
    with path.open("rb") as file:
        file.seek(offset)
        while chunk := file.read(_CHUNK):
            yield chunk


def remove(root: Path) -> None:
    """Remove a tree, its read-only directories too. A link in it is removed, never followed."""
    if not root.is_dir():
        return
    for directory, names, _ in os.walk(root):  # top-down: a directory is opened up before it is entered
        for name in (".", *names):
            child = Path(directory, name)
            if stat.S_ISDIR(child.lstat().st_mode):
                child.chmod(stat.S_IRWXU)
    shutil.rmtree(root)
