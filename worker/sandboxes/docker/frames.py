"""Docker's stream format: 8-byte headers (stream, three zeros, big-endian length) before each payload. Pure."""

import struct
from collections.abc import Iterator

STDOUT = 1
STDERR = 2
_HEADER = struct.Struct(">BxxxL")


class FrameParser:
    """Cuts a byte stream into ``(stream, payload)`` pieces, however the bytes arrive.

    A long payload is handed on in the pieces it comes in, so nothing is held but a header's beginning.
    """

    def __init__(self) -> None:
        self._head = b""
        self._stream = 0
        self._left = 0

    @property
    def inside(self) -> bool:
        """A frame has begun and is not complete: an end here is a cut."""
        return self._left > 0 or bool(self._head)

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The pieces that ``data`` completes."""
        view = memoryview(data)
        while view:
            if not self._left:
                view = self._open(view)
            if self._left and view:
                piece = bytes(view[: self._left])
                self._left -= len(piece)
                view = view[len(piece) :]
                yield self._stream, piece

    def _open(self, view: memoryview) -> memoryview:
        missing = _HEADER.size - len(self._head)
        self._head += bytes(view[:missing])
        if len(self._head) == _HEADER.size:
            self._stream, self._left = _HEADER.unpack(self._head)
            self._head = b""
        return view[missing:]
