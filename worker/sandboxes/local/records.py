"""Which commands of a sandbox run: written down, so that another worker can end what a dead one left."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from worker.sandboxes.local import groups


class Records:
    """One file a command, named by a digest of its tag and its process group, holding its leader's start time."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @contextmanager
    def of(self, tag: str, group: int) -> Iterator[None]:
        """Keep the record of a command while the block runs."""
        self._directory.mkdir(mode=0o700, exist_ok=True)
        record = self._directory / f"{_digest(tag)}.{group}"
        record.write_text(groups.born(group) or "")
        try:
            yield
        finally:
            record.unlink(missing_ok=True)

    def left(self, tag: str) -> Iterator[int]:
        """The process groups of the recorded commands of ``tag``; the record of each goes once it was dealt with."""
        for record in self._directory.glob(f"{_digest(tag)}.*"):
            group = int(record.suffix[1:])
            # A leader that is gone leaves its number to its group; one born at another time is a stranger.
            if groups.born(group) in (None, record.read_text()):
                yield group
            record.unlink(missing_ok=True)


def _digest(tag: str) -> str:
    return hashlib.sha256(tag.encode()).hexdigest()[:32]
