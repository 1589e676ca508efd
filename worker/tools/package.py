"""A tool package: a manifest and files, named by a digest over both, in an archive of one form only.

The descriptor is the RFC 8785 form of ``{"files": [{"executable", "path", "sha256", "size"}], "manifest": {...},
"schema": "sandferry.tool/1"}``; its SHA-256 is the package's digest. The archive is a plain ustar whose first
member is the descriptor, then the files in the order of their paths. Nothing of the machine that built it is in
it: the same files make the same bytes.
"""

import hashlib
import io
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from worker.failures.model import InvalidRequest
from worker.tools.manifest import NAME, Manifest, parse_manifest, read_json, valid_path

SCHEMA = "sandferry.tool/1"
DESCRIPTOR = "package.json"
"""The archive's first member."""
FILES = "files/"
"""Where the files lie in the archive."""
FILES_MAX = 2000
"""Files of a package; their list stays under 1 MiB."""
DESCRIPTOR_MAX = 1024 * 1024
_BLOCK = 512
"""Bytes of a tar header (POSIX ustar)."""
_REFERENCE = re.compile(rf"(?P<name>{NAME})@sha256:(?P<digest>[0-9a-f]{{64}})")


@dataclass(frozen=True, slots=True)
class File:
    """One file: its bytes, and whether it may be executed."""

    data: bytes = field(repr=False)
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Reference:
    """``name@sha256:<digest>``: what a request pins."""

    name: str
    digest: str

    def __str__(self) -> str:
        return f"{self.name}@sha256:{self.digest}"

    @classmethod
    def parse(cls, text: str) -> "Reference":
        """Read a reference. Raises InvalidRequest (``tool``, ``malformed``)."""
        match = _REFERENCE.fullmatch(text)
        if match is None:
            raise InvalidRequest("tool", "malformed")
        return cls(match["name"], match["digest"])


@dataclass(frozen=True)
class Descriptor:
    """What a package holds. Made by :func:`pack` or :func:`read_descriptor` only, so that it is valid."""

    text: bytes = field(repr=False)
    listed: tuple[Mapping[str, Any], ...] = field(repr=False)
    manifest: Manifest

    @cached_property
    def digest(self) -> str:
        """64 hexadecimal digits."""
        return hashlib.sha256(self.text).hexdigest()

    @property
    def reference(self) -> Reference:
        """The package's full name."""
        return Reference(self.manifest.name, self.digest)

    @property
    def sums(self) -> str:
        """The files as ``sha256sum -c`` reads them, from the directory that holds the descriptor."""
        return "".join(f"{entry['sha256']}  {FILES}{entry['path']}\n" for entry in self.listed)


@dataclass(frozen=True, slots=True)
class Package:
    """A descriptor and the archive that holds what it lists."""

    descriptor: Descriptor
    archive: bytes = field(repr=False)


def pack(manifest: Any, files: Mapping[str, File], *, limit: int) -> Package:
    """Make a package. ``manifest`` is its JSON value, ``limit`` bounds the archive in bytes.

    :raises InvalidRequest: names the part and why.
    """
    parsed = parse_manifest(manifest)
    if len(files) > FILES_MAX:
        raise InvalidRequest("package", "too_many_paths")
    if not all(map(valid_path, files)):
        raise InvalidRequest("package", "unsafe_path")
    if set(parsed.files()) - set(files):
        raise InvalidRequest("manifest_entrypoint", "missing")
    listed = tuple(_entry(path, files[path]) for path in sorted(files))
    descriptor = Descriptor(_canonical({"files": listed, "manifest": manifest, "schema": SCHEMA}), listed, parsed)
    archive = _archive(descriptor, files)
    if len(archive) > limit:
        raise InvalidRequest("package", "too_large")
    return Package(descriptor, archive)


def unpack(archive: bytes, *, limit: int) -> Package:
    """Read an archive that anybody may have made.

    :raises InvalidRequest: names the part and why: a path that escapes, a path twice, a link, changed bytes.
    """
    if len(archive) > limit:
        raise InvalidRequest("package", "too_large")
    descriptor = read_descriptor(archive)
    files = _members(archive)
    executable = {entry["path"]: entry["executable"] for entry in descriptor.listed}
    if set(files) != set(executable):
        raise InvalidRequest("package", "archive_invalid")
    made = {path: File(data, executable[path]) for path, data in files.items()}
    if any(_entry(path, made[path]) != entry for entry in descriptor.listed if (path := entry["path"])):
        raise InvalidRequest("package", "digest_mismatch")
    again = pack(read_json(descriptor.text, "package")["manifest"], made, limit=limit)
    if again.archive != archive:
        # The same files in another wrapping: one package has one archive.
        raise InvalidRequest("package", "archive_invalid")
    return again


def read_descriptor(head: bytes) -> Descriptor:
    """The descriptor at the head of an archive: all that is needed to know what a tool is.

    :raises InvalidRequest: ``package`` or a part of the manifest, and why.
    """
    header = _header(head[:_BLOCK])
    if header is None or header.name != DESCRIPTOR or not header.isreg() or header.size > DESCRIPTOR_MAX:
        raise InvalidRequest("package", "archive_invalid")
    text = head[_BLOCK : _BLOCK + header.size]
    value = read_json(text, "package")
    if not isinstance(value, dict) or set(value) != {"files", "manifest", "schema"} or value["schema"] != SCHEMA:
        raise InvalidRequest("package", "archive_invalid")
    if not isinstance(value["files"], list) or not all(map(_is_entry, value["files"])):
        raise InvalidRequest("package", "archive_invalid")
    paths = [entry["path"] for entry in value["files"]]
    if len(set(paths)) != len(paths):
        raise InvalidRequest("package", "duplicate_path")
    if paths != sorted(paths) or _canonical(value) != text:
        raise InvalidRequest("package", "archive_invalid")
    return Descriptor(text, tuple(value["files"]), parse_manifest(value["manifest"]))


def descriptor_size(header: bytes) -> int:
    """Bytes from the head of an archive that hold the whole descriptor, read off its first 512."""
    found = _header(header)
    return _BLOCK + (min(found.size, DESCRIPTOR_MAX) if found is not None else 0)


def _canonical(value: Any) -> bytes:
    from rfc8785 import CanonicalizationError, dumps  # noqa: PLC0415 - worker memory is budgeted

    try:
        text: bytes = dumps(value)
    except (CanonicalizationError, RecursionError, UnicodeEncodeError):
        text = b""
    if not text:
        raise InvalidRequest("manifest", "bad_value")  # an integer past 2^53, or a surrogate: no canonical form
    if len(text) > DESCRIPTOR_MAX:
        raise InvalidRequest("package", "too_large")
    return text


def _entry(path: str, file: File) -> dict[str, Any]:
    sha256 = hashlib.sha256(file.data).hexdigest()
    return {"executable": file.executable, "path": path, "sha256": sha256, "size": len(file.data)}


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and set(entry) == {"executable", "path", "sha256", "size"}
        and type(entry["executable"]) is bool
        and isinstance(entry["path"], str)
        and valid_path(entry["path"])
        and isinstance(entry["sha256"], str)
        and re.fullmatch(r"[0-9a-f]{64}", entry["sha256"]) is not None
        and type(entry["size"]) is int
        and entry["size"] >= 0
    )


def _archive(descriptor: Descriptor, files: Mapping[str, File]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        _add(tar, DESCRIPTOR, File(descriptor.text))
        for path in sorted(files):
            _add(tar, FILES + path, files[path])
    return out.getvalue()


def _add(tar: tarfile.TarFile, name: str, file: File) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(file.data), 0o755 if file.executable else 0o644
    tar.addfile(info, io.BytesIO(file.data))


def _header(block: bytes) -> tarfile.TarInfo | None:
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.TarError:
        return None


def _members(archive: bytes) -> dict[str, bytes]:
    """The files by their paths, the descriptor left out."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            for member in list(tar)[1:]:
                path = _path_of(member, found)
                # Never more than the archive has: a sparse or a forged header may promise terabytes.
                found[path] = archive[member.offset_data : member.offset_data + member.size]
    except (tarfile.TarError, ValueError, OverflowError):
        found = {}
    return found


def _path_of(member: tarfile.TarInfo, earlier: Mapping[str, bytes]) -> str:
    path = member.name.removeprefix(FILES)
    if member.issym() or member.islnk():
        raise InvalidRequest("package", "symlink")
    if member.type != tarfile.REGTYPE or member.issparse():
        raise InvalidRequest("package", "archive_invalid")
    if not member.name.startswith(FILES) or not valid_path(path):
        raise InvalidRequest("package", "unsafe_path")
    if path in earlier:
        raise InvalidRequest("package", "duplicate_path")
    return path
