"""The private directory of one import, and the removal of those whose worker died.

A worker that is killed removes nothing. Its lock on the directory goes with it, though, and that is how the next
import on this machine tells what is left from what is in use.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "sandferry-copy-back-"


@contextmanager
def scratch(parent: Path | None) -> Iterator[Path]:
    """Make a directory (0700, empty) in ``parent``, by default the system's; it is removed at the end.

    :raises OSError: it cannot be made.
    """
    place = parent or Path(tempfile.gettempdir())
    remove_dead(place)
    home, lock = _locked(place)
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)
        os.close(lock)


def remove_dead(parent: Path) -> int:
    """Remove what dead workers of this user left in ``parent``; how many there were."""
    removed = 0
    for left in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):  # somebody else's, in use, or gone meanwhile
            lock = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(lock).st_uid == os.geteuid():
                    shutil.rmtree(left, ignore_errors=True)
                    removed += 1
            finally:
                os.close(lock)
    return removed


def _locked(parent: Path) -> tuple[Path, int]:
    """A new directory and its lock. One that was taken for a dead worker's before it was locked is made again."""
    while True:
        home = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        with suppress(FileNotFoundError):
            lock = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.fstat(lock).st_nlink:
                return home, lock
            os.close(lock)
