"""The header of a git bundle, read by us: git's own reader takes any ref and any capability. Pure.

Format: git's ``gitformat-bundle`` (5). Version 2 is SHA-1; version 3 says its object format.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import BinaryIO

from worker.imports.limits import MEBIBYTE, corrupt, refused
from worker.imports.refnames import clashing, valid_ref

STAGE = "parse"
MAX_HEADER = MEBIBYTE
MAX_REFS = 10_000
MAX_PREREQUISITES = 10_000

SNAPSHOT = "refs/sandferry/snapshot"
BASELINE = "refs/sandferry/baseline"
HEAD = "refs/sandferry/head"
_SINGLE = frozenset({SNAPSHOT, BASELINE, HEAD})
_MANY = ("refs/sandferry/heads/", "refs/sandferry/tags/")
_STASH = re.compile(r"refs/sandferry/stash/(?:0|[1-9][0-9]{0,5})")
_SIGNATURES = {
    b"# v2 git bundle\n": {b"": "sha1"},
    b"# v3 git bundle\n": {b"@object-format=sha256\n": "sha256", b"@object-format=sha1\n": "sha1"},
}
_HEX = {"sha1": 40, "sha256": 64}


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a bundle says of itself. ``pack_offset`` is where its pack begins, in bytes.

    Names of refs are UTF-8 with surrogate escapes, ids lower-case hex.
    """

    object_format: str
    prerequisites: tuple[str, ...]
    refs: Mapping[str, str]
    pack_offset: int


def read_header(bundle: BinaryIO) -> Header:
    """Read the header of an open bundle, :data:`MAX_HEADER` bytes at most."""
    return parse_header(bundle.read(MAX_HEADER + 2))


def parse_header(data: bytes) -> Header:
    """Read the header that ``data`` starts with.

    :raises OperationFailed: stage ``parse``: ``bundle_header`` (no bundle, or one that git does not write),
        ``ref_refused`` (a ref that no capture has), ``too_large``.
    """
    object_format, start = _signature(data)
    end = data.find(b"\n\n", start - 1)
    if end < 0 or end > MAX_HEADER:
        raise corrupt(STAGE, "bundle_truncated" if len(data) <= MAX_HEADER else "too_large")
    lines = data[start:end].split(b"\n") if end >= start else []
    wanted = [line for line in lines if line.startswith(b"-")]
    if lines[: len(wanted)] != wanted:
        raise corrupt(STAGE, "bundle_header")
    return Header(
        object_format=object_format,
        prerequisites=_prerequisites(wanted, _HEX[object_format]),
        refs=_refs(lines[len(wanted) :], _HEX[object_format]),
        pack_offset=end + 2,
    )


def _signature(data: bytes) -> tuple[str, int]:
    """The object format, and where the lines begin."""
    for signature, formats in _SIGNATURES.items():
        for capability, object_format in formats.items():
            if data.startswith(signature + capability):
                return object_format, len(signature + capability)
    raise corrupt(STAGE, "bundle_header")


def _prerequisites(lines: list[bytes], digits: int) -> tuple[str, ...]:
    pattern = re.compile(rb"-([0-9a-f]{%d})(?: .*)?" % digits, re.DOTALL)
    ids = [found[1].decode() for line in lines if (found := pattern.fullmatch(line))]
    if len(ids) != len(lines) or len(ids) > MAX_PREREQUISITES:
        raise corrupt(STAGE, "bundle_header")
    return tuple(dict.fromkeys(ids))


def _refs(lines: list[bytes], digits: int) -> Mapping[str, str]:
    pattern = re.compile(rb"([0-9a-f]{%d}) ([^\n]+)" % digits)
    pairs = [(found[2], found[1]) for line in lines if (found := pattern.fullmatch(line))]
    refs = {name.decode("utf-8", "surrogateescape"): oid.decode() for name, oid in pairs}
    if len(pairs) != len(lines) or len(refs) != len(pairs):
        raise corrupt(STAGE, "bundle_header")
    if len(refs) > MAX_REFS:
        raise refused(STAGE, "too_large")
    if not all(valid_ref(name) for name, _ in pairs) or not all(map(_expected, refs)) or clashing(frozenset(refs)):
        raise refused(STAGE, "ref_refused")
    if SNAPSHOT not in refs:
        raise corrupt(STAGE, "ref_missing")
    return MappingProxyType(refs)


def _expected(name: str) -> bool:
    return name in _SINGLE or name.startswith(_MANY) or _STASH.fullmatch(name) is not None
