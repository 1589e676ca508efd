"""The operator-only diagnostics store: one bounded, redacted tail per failed attempt, on this worker's disk.

Files are 0600 in a 0700 directory, named ``<task id>-<attempt>.txt``; the oldest go when the total passes its
cap, and each goes when its time is over. What is here is seen by operators of this machine and by nobody else.
"""

import re
import time
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.:-]{0,63}")


class DiagnosticsStore:
    """A directory of tails."""

    def __init__(self, directory: Path, *, max_bytes: int, ttl: float) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self._ttl = ttl

    def keep(self, task_id: str, attempt: int, tail: str) -> Path | None:
        """Write a tail that was redacted already. ``None``: there is no place for it, which fails no job."""
        if not _NAME.fullmatch(task_id):
            return None
        path = self._directory / f"{task_id}-{attempt}.txt"
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.touch(mode=0o600, exist_ok=False)
            path.write_text(tail, encoding="utf-8", errors="replace")
            self._prune()
        except OSError:
            return None
        return path

    def read(self, task_id: str) -> list[tuple[int, str]]:
        """The tails of a task: (attempt, text), first attempt first."""
        if not _NAME.fullmatch(task_id):
            return []
        found = self._directory.glob(f"{task_id}-*.txt") if self._directory.is_dir() else []
        # A task id may itself end in a number: `a-1-2` is an attempt of `a-1`, not of `a`.
        ours = [(path.stem.rpartition("-")[2], path) for path in found if path.stem.rpartition("-")[0] == task_id]
        return sorted((int(attempt), path.read_text(encoding="utf-8")) for attempt, path in ours)

    def _prune(self) -> None:
        oldest_first = sorted(
            (path.stat().st_mtime, path.stat().st_size, path) for path in self._directory.glob("*.txt")
        )
        total = sum(size for _, size, _ in oldest_first)
        for modified, size, path in oldest_first:
            if total <= self._max_bytes and modified > time.time() - self._ttl:
                break
            path.unlink(missing_ok=True)
            total -= size
