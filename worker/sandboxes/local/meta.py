"""What the local driver remembers of a sandbox."""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from worker.sandboxes.local.tree import write_atomically

_FILE = "meta.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """``created`` in seconds since the epoch: it outlives this process."""

    labels: Mapping[str, str]
    created: float
    env: Mapping[str, str] = field(default_factory=dict, repr=False)


def load(home: Path) -> Meta | None:
    """The meta of the sandbox in ``home``; ``None`` when there is none, or it is no sandbox of ours."""
    try:
        return Meta(**json.loads((home / _FILE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def save(home: Path, meta: Meta) -> None:
    """Write the meta, whole or not at all."""
    write_atomically(home / _FILE, [json.dumps(asdict(meta)).encode()], mode=0o600)


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the directory's lock against other processes of this machine; the kernel frees a dead one's."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
