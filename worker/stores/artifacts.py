"""The artifact store: what a copy-back brought, immutable, named by what it holds.

``<root>/sha256/<aa>/<digest>/`` holds ``manifest.json``, whose SHA-256 is ``<digest>``, and the files it lists
with their sizes and SHA-256. Every file is written under a temporary name in ``<root>/incoming``, read back, then
moved; the manifest comes last, so a directory without one is no artifact yet. A writer that dies leaves its temporary
file, which a later one removes. Places are fsspec URLs of settings (``file:///srv/x``,
``s3://bucket/x``); requests carry the name of a place, never a URL.
"""

import hashlib
import io
import json
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

from worker.failures.model import Category, Failure, InvalidRequest, OperationFailed

MANIFEST = "manifest.json"
MAX_MANIFEST = 256 * 1024 * 1024
"""Bytes; a manifest names up to 100 000 empty directories."""
ABANDONED = timedelta(days=1)
"""How long nobody has written to a temporary file whose writer must be dead: no job has a deadline of a day."""
_CHUNK = 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Artifact:
    """Where an artifact is: the name of its store, and its digest. ``size`` is bytes of all its files."""

    store: str
    digest: str
    size: int

    def __str__(self) -> str:
        return f"{self.store}/sha256:{self.digest}"


class ArtifactStore:
    """One place for artifacts. ``url`` is fsspec's, with whatever options its file system takes."""

    def __init__(self, name: str, url: str, **options: Any) -> None:
        import fsspec  # noqa: PLC0415 - only workers that keep artifacts need it

        self.name = name
        self._fs, self._root = fsspec.core.url_to_fs(url, **options)

    def put(self, files: Mapping[str, Path], manifest: Mapping[str, Any]) -> Artifact:
        """Keep ``files`` under their names, with ``manifest`` and the list of them. What is there is verified.

        :raises OperationFailed: stage ``store``, ``digest_mismatch``: what was written, or was there, is not
            what it should be. Faults of the file system are raised as they are.
        """
        if not all(_NAME.fullmatch(name) and name != MANIFEST for name in files):
            raise ValueError("files: a name no store can hold")
        sums = {name: _sum_file(path) for name, path in sorted(files.items())}
        listed = {name: {"bytes": size, "sha256": digest} for name, (size, digest) in sums.items()}
        text = json.dumps({**manifest, "files": listed}, sort_keys=True, separators=(",", ":")).encode() + b"\n"
        digest = hashlib.sha256(text).hexdigest()
        if self._fs.exists(self._key(digest, MANIFEST)):
            self.verify(digest)
        else:
            self._fs.makedirs(self._key(digest), exist_ok=True)
            self._fs.makedirs(self._incoming, exist_ok=True)
            self._remove_abandoned()
            for name, path in files.items():
                with path.open("rb") as source:
                    self._write(digest, name, source, sums[name])
            self._write(digest, MANIFEST, io.BytesIO(text), (len(text), digest))
        return Artifact(self.name, digest, sum(size for size, _ in sums.values()) + len(text))

    def manifest(self, digest: str) -> dict[str, Any]:
        """The manifest of an artifact, verified.

        :raises InvalidRequest: there is no such artifact.
        :raises OperationFailed: ``digest_mismatch``.
        """
        found: dict[str, Any] = json.loads(self._manifest_text(digest))
        return found

    def verify(self, digest: str) -> None:
        """Read every file of an artifact; raises as :meth:`manifest` does."""
        for name, listed in self.manifest(digest)["files"].items():
            if self._sum(self._key(digest, name)) != (listed["bytes"], listed["sha256"]):
                raise _damaged()

    def fetch(self, digest: str, directory: Path) -> dict[str, Any]:
        """Copy an artifact into ``directory`` (made), verified on the way; its manifest."""
        text = self._manifest_text(digest)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        (directory / MANIFEST).write_bytes(text)
        found: dict[str, Any] = json.loads(text)
        for name, listed in found["files"].items():
            target = directory / name
            with self._fs.open(self._key(digest, name), "rb") as source, target.open("wb") as file:
                while chunk := source.read(_CHUNK):
                    file.write(chunk)
            if _sum_file(target) != (listed["bytes"], listed["sha256"]):
                target.unlink()
                raise _damaged()
        return found

    def _manifest_text(self, digest: str) -> bytes:
        if not _DIGEST.fullmatch(digest) or not self._fs.exists(self._key(digest, MANIFEST)):
            raise InvalidRequest("artifact", "not_found")
        with self._fs.open(self._key(digest, MANIFEST), "rb") as file:
            text: bytes = file.read(MAX_MANIFEST + 1)
        if hashlib.sha256(text).hexdigest() != digest:
            raise _damaged()
        return text

    def _write(self, digest: str, name: str, source: IO[bytes], wanted: tuple[int, str]) -> None:
        """Write under a temporary name, read back, then give the name."""
        temporary = f"{self._incoming}/{name}.{secrets.token_hex(8)}.part"
        try:
            with self._fs.open(temporary, "wb") as file:
                while chunk := source.read(_CHUNK):
                    file.write(chunk)
            if self._sum(temporary) != wanted:
                raise _damaged()
            self._fs.mv(temporary, self._key(digest, name))
        finally:
            with suppress(FileNotFoundError):
                self._fs.rm(temporary)

    def _remove_abandoned(self) -> None:
        """Remove temporary files of dead writers. Whatever hinders that hinders no artifact."""
        with suppress(OSError, NotImplementedError):
            for path in self._fs.ls(self._incoming, detail=False):
                with suppress(FileNotFoundError):  # another writer was faster, or it has its name by now
                    written = self._fs.modified(path)
                    if path.endswith(".part") and datetime.now(UTC) - written.astimezone(UTC) > ABANDONED:
                        self._fs.rm(path)

    @property
    def _incoming(self) -> str:
        return f"{self._root.rstrip('/')}/incoming"

    def _sum(self, key: str) -> tuple[int, str]:
        try:
            with self._fs.open(key, "rb") as file:
                return _sum(file)
        except FileNotFoundError:
            raise _damaged() from None

    def _key(self, digest: str, *name: str) -> str:
        return "/".join((self._root.rstrip("/"), "sha256", digest[:2], digest, *name))


def artifact_store(places: Mapping[str, str], name: str) -> ArtifactStore:
    """The store that settings place under ``name``.

    :raises InvalidRequest: there is none of this name.
    """
    if name not in places:
        raise InvalidRequest("artifact_store", "not_configured")
    return ArtifactStore(name, places[name])


def _sum(file: IO[bytes]) -> tuple[int, str]:
    """Size and SHA-256 of what is left to read."""
    digest, size = hashlib.sha256(), 0
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
        size += len(chunk)
    return size, digest.hexdigest()


def _sum_file(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        return _sum(file)


def _damaged() -> OperationFailed:
    return OperationFailed(
        Failure(operation="copy_back", stage="store", category=Category.CORRUPT_DATA, reason="digest_mismatch")
    )
