"""The key ring's file: JSON, 0600, replaced atomically.

``{"version": 1, "keys": [{"id", "created", "public_key", "private_key"}, ...]}``, oldest first, keys as
base64url. Settings name the file (``*_FILE``); no key is ever in an environment variable.
"""

import fcntl
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict

from worker.secrets.keys import Key, KeyRing, PublicKey, generate, key_id, read_public_key
from worker.secrets.secret import Secret

__all__ = ["Key", "KeyRing", "KeyRingError", "PublicKey", "list_keys", "load", "new", "parse", "retire", "save"]

FILE_LIMIT = 256 * 1024
"""Bytes of a key ring file that are read at most: more than a thousand keys."""
PRIVATE_MODE = 0o600


class KeyRingError(ValueError):
    """A key ring file that cannot be used; says why and what to do, never what it holds."""


class _StoredKey(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)
    id: str
    created: AwareDatetime
    public_key: str
    private_key: str


class _StoredRing(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)
    version: Literal[1]
    keys: list[_StoredKey]


def parse(data: bytes) -> KeyRing:
    """The key ring in a file's bytes.

    :raises KeyRingError: not a key ring, or an id that is not its key's.
    """
    try:
        stored = _StoredRing.model_validate_json(data)
        ring = KeyRing(tuple(_read(key) for key in stored.keys))
    except ValueError:  # pydantic's ValidationError is one
        ring = None
    if ring is None:
        raise KeyRingError("key ring: damaged, or not a key ring of version 1")
    return ring


def _read(stored: _StoredKey) -> Key:
    public, _ = read_public_key(stored.public_key), read_public_key(stored.private_key)  # both are 32 bytes
    if key_id(public) != stored.id:
        raise ValueError("key id")
    return Key(PublicKey(stored.id, stored.created, public), Secret(stored.private_key))


def serialise(ring: KeyRing) -> bytes:
    """The bytes of a key ring file. They hold the private keys."""
    keys = [
        {
            "id": key.public.id,
            "created": key.public.created.isoformat(),
            "public_key": key.public.text,
            "private_key": key.private_key.reveal(),
        }
        for key in ring.keys
    ]
    return json.dumps({"version": 1, "keys": keys}, indent=2).encode() + b"\n"


def load(path: Path) -> KeyRing:
    """The key ring in a file.

    :raises KeyRingError: missing, unreadable, damaged, or readable by group or others.
    """
    try:
        with path.open("rb") as file:
            exposed = stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077
            data = file.read(FILE_LIMIT + 1)
    except OSError as error:
        problem = error.strerror or "unreadable"
    else:
        problem = "group or others may use it; make it private with: chmod 600" if exposed else ""
        problem = problem or ("larger than a key ring can be" if len(data) > FILE_LIMIT else "")
    if problem:
        raise KeyRingError(f"key ring: {problem}")
    return parse(data)


def save(path: Path, ring: KeyRing) -> None:
    """Write a key ring, 0600; the file changes whole or not at all and survives a power cut."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), PRIVATE_MODE)
            file.write(serialise(ring))
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    with _directory(path.parent) as directory:
        os.fsync(directory)


def new(path: Path, *, now: datetime | None = None) -> PublicKey:
    """Add a key, which becomes the one to seal with; makes the file, and its directory, if there is none.

    :raises KeyRingError: the file is there and cannot be used.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _directory(path.parent) as directory:
        fcntl.flock(directory, fcntl.LOCK_EX)  # two operators at once must not lose one key
        ring = load(path) if path.exists() else KeyRing(())
        ring = ring.with_new(generate(now or datetime.now(UTC)))
        save(path, ring)
    return ring.current


def retire(path: Path, retired: str) -> bool:
    """Drop the key with this id; whether it was there.

    :raises KeyRingError: the file cannot be used, or the key is the one that seals.
    """
    with _directory(path.parent) as directory:
        fcntl.flock(directory, fcntl.LOCK_EX)
        ring = load(path)
        if ring.find(retired) is None:
            return False
        if ring.current.id == retired:
            raise KeyRingError("key ring: the current key seals; add a new one before it retires")
        save(path, ring.without(retired))
    return True


def list_keys(path: Path) -> tuple[PublicKey, ...]:
    """Ids, dates and public keys of a file, oldest first; the last one seals.

    :raises KeyRingError: the file cannot be used.
    """
    return load(path).public()


@contextmanager
def _directory(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
