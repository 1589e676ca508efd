"""What a pack would unpack to, found out before git unpacks it.

Format: git's ``gitformat-pack`` (5). Only sizes are read here; ``index-pack`` checks everything else. Bytes
are inflated a window at a time and dropped, so memory does not depend on the pack.
"""

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from worker.imports.limits import Limits, corrupt, refused

STAGE = "index"
_WINDOW = 65536
_FIRST = 512
"""Bytes offered to zlib at first: most objects are smaller, and what it leaves unused is copied."""
_OFS_DELTA, _REF_DELTA = 6, 7
_TYPES = frozenset({1, 2, 3, 4, _OFS_DELTA, _REF_DELTA})
_HASH = {"sha1": 20, "sha256": 32}


@dataclass(frozen=True, slots=True)
class PackSize:
    """How many objects a pack holds, and how many bytes they are, deltas applied."""

    objects: int
    inflated: int


def measure(file: BinaryIO, object_format: str, limits: Limits, tick: Callable[[], None] = lambda: None) -> PackSize:
    """Measure the pack that ``file`` is positioned at, up to the end of the file; stops at the first limit passed.

    ``tick`` is called once an object and once a window; it may raise.

    :raises OperationFailed: stage ``index``: ``too_many_objects``, ``too_large``, ``pack_truncated``,
        ``archive_invalid``.
    """
    source = _Source(file)
    magic, version, objects = struct.unpack(">4sII", source.take(12))
    if magic != b"PACK" or version not in {2, 3}:
        raise corrupt(STAGE, "archive_invalid")
    if objects > limits.objects:
        raise refused(STAGE, "too_many_objects")
    inflated = 0
    for _ in range(objects):
        tick()
        inflated += _object(source, _HASH[object_format], limits, limits.inflated - inflated, tick)
    source.take(_HASH[object_format])
    if not source.at_end():
        raise corrupt(STAGE, "archive_invalid")
    return PackSize(objects, inflated)


def _object(source: "_Source", hash_size: int, limits: Limits, left: int, tick: Callable[[], None]) -> int:
    """Pass one object; its size in bytes, which is at most ``left``."""
    kind, size = _entry_header(source)
    if kind == _REF_DELTA:
        source.take(hash_size)
    elif kind == _OFS_DELTA:
        while source.byte() & 0x80:
            pass
    bound = min(left, limits.largest)
    if size > bound:
        raise refused(STAGE, "too_large")
    start = source.inflate(size, tick)
    if kind not in {_OFS_DELTA, _REF_DELTA}:
        return size
    result = _delta_result(start)
    if result > bound:
        raise refused(STAGE, "too_large")
    return result


def _entry_header(source: "_Source") -> tuple[int, int]:
    byte = source.byte()
    kind, size, shift = (byte >> 4) & 7, byte & 15, 4
    while byte & 0x80:
        byte = source.byte()
        size |= (byte & 0x7F) << shift
        shift += 7
        if shift > 63:
            raise corrupt(STAGE, "archive_invalid")
    if kind not in _TYPES:
        raise corrupt(STAGE, "archive_invalid")
    return kind, size


def _delta_result(start: bytes) -> int:
    """The second of the two numbers that a delta begins with: the size of what it makes."""
    numbers, value, shift = [], 0, 0
    for byte in start:
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            numbers.append(value)
            value = shift = 0
        if len(numbers) == 2:
            return numbers[1]
    raise corrupt(STAGE, "archive_invalid")


class _Source:
    """A file read forward through one window."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._window = memoryview(b"")

    def take(self, count: int) -> bytes:
        while len(self._window) < count:
            more = self._file.read(_WINDOW)
            if not more:
                raise corrupt(STAGE, "pack_truncated")
            self._window = memoryview(bytes(self._window) + more)
        taken, self._window = self._window[:count], self._window[count:]
        return bytes(taken)

    def byte(self) -> int:
        return self.take(1)[0]

    def at_end(self) -> bool:
        return not self._window and not self._file.read(1)

    def inflate(self, size: int, tick: Callable[[], None]) -> bytes:
        """Pass a zlib stream of exactly ``size`` bytes; its first 20, enough for two numbers."""
        stream, start, done, step = zlib.decompressobj(), b"", 0, _FIRST
        while not stream.eof:
            if not self._window:
                self._window = memoryview(self._file.read(_WINDOW))
            offered = self._window[:step]
            if not offered:
                raise corrupt(STAGE, "pack_truncated")
            try:
                made = stream.decompress(offered, _WINDOW)
            except zlib.error:
                raise corrupt(STAGE, "object_corrupt") from None
            start += made[: 20 - len(start)]
            done += len(made)
            if done > size:
                raise corrupt(STAGE, "object_corrupt")
            unused = len(stream.unused_data if stream.eof else stream.unconsumed_tail)
            self._window = self._window[len(offered) - unused :]
            step = _WINDOW
            tick()
        if done != size:
            raise corrupt(STAGE, "object_corrupt")
        return start
