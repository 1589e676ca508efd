"""One exec of a container: created, started, and read while the deadline holds."""

import select
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from worker.failures.model import Category
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.docker.engine import Engine
from worker.sandboxes.docker.faults import failure
from worker.sandboxes.docker.frames import STDERR, STDOUT, FrameParser

_TICK = 0.05
"""Seconds between two looks at the deadline and the cancel signal."""
_LOOK = 0.5
"""Seconds after which the engine is asked whether the command still runs: a background child that holds the pipe
keeps the stream open, and may write to it for ever."""
_SETTLE = 0.1
"""Seconds the engine usually takes at most to record an exit after it closed the stream."""
_CONFIRM = 5.0
"""Seconds a busy engine may take to record the exit of one of our own scripts."""
_UNREADABLE = 126
"""Exit code the engine makes up when it could not hand on the output; the command may go on."""
DRAIN = 0.2
"""Seconds to read on after the command's end."""
_CHUNK = 65536
"""Bytes per read; more than the 8 KiB that ``http.client`` may have read ahead with the header."""


class ExecStream:
    """A running exec.

    ``over``: it ended by itself. ``suspect``: its stream ended and nothing says that it did; a cut looks like that.
    """

    def __init__(
        self, engine: Engine, container: str, argv: Sequence[str], env: Mapping[str, str], deadline: Deadline
    ) -> None:
        self._engine = engine
        self._deadline = deadline
        self._parser = FrameParser()
        self.over = False
        self.suspect = False
        self.id: str = engine.exec_create(container, list(argv), environment=dict(env))["Id"]
        self._response = engine.start_stream(self.id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stop reading. The command goes on."""
        self._response.close()

    def inspect(self) -> dict[str, Any]:
        """The engine's record: ``Running``, ``ExitCode`` (``None`` before the end)."""
        self._record: dict[str, Any] = self._engine.exec_inspect(self.id)
        return self._record

    def exit_code(self) -> int:
        """The exit code of a command that is over, as the engine's last record has it."""
        return int(self._record["ExitCode"])

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """``(stream, bytes)`` until the command is over, suspect, or the deadline has come (neither).

        :raises OperationFailed: what came is no stream of the engine's (``stream_malformed``).
        """
        looked = time.monotonic()
        while self._deadline.ended_by() is None:
            if self._readable(min(_TICK, self._deadline.remaining())):
                if not (data := self._response.raw.read1(_CHUNK)):
                    self._settle()
                    return
                yield from self._parsed(data)
            if time.monotonic() - looked > _LOOK:
                looked = time.monotonic()
                if not self.inspect()["Running"]:
                    yield from self.drain()
                    self.over = True
                    return

    def drain(self) -> Iterator[tuple[int, bytes]]:
        """What still comes within :data:`DRAIN` seconds of the end."""
        end = time.monotonic() + DRAIN
        while (left := end - time.monotonic()) > 0 and self._readable(left):
            if not (data := self._response.raw.read1(_CHUNK)):
                return
            yield from self._parsed(data)

    def _readable(self, seconds: float) -> bool:
        poller = select.poll()
        poller.register(self._response.raw.fileno(), select.POLLIN)
        return bool(poller.poll(seconds * 1000))

    def _parsed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        for stream, piece in self._parser.feed(data):
            if stream not in (STDOUT, STDERR):
                raise failure("run", Category.CORRUPT_DATA, "stream_malformed")
            yield stream, piece

    def _settle(self) -> None:
        """The stream has ended; the command should have."""
        ended = self.wait_end(_SETTLE)
        self.suspect = self._parser.inside or not ended or self.exit_code() == _UNREADABLE
        self.over = not self.suspect

    def wait_end(self, seconds: float) -> bool:
        """Wait for the engine to record the end; say whether it has."""
        return self._deadline.wait(seconds, lambda: not self.inspect()["Running"])

    @property
    def cut(self) -> bool:
        """The stream ended within a frame."""
        return self._parser.inside


def helper(
    engine: Engine, container: str, script: str, *args: str, deadline: Deadline, limit: int = _CHUNK
) -> tuple[int, bytes]:
    """Run one of our scripts; its exit code and at most ``limit`` bytes of its output.

    :raises OperationFailed: it did not end in time (``timeout_ambiguous``).
    """
    output = bytearray()
    with ExecStream(engine, container, ["/bin/sh", "-c", script, "sandferry", *args], {}, deadline) as stream:
        for kind, data in stream.frames():
            if kind == STDOUT and len(output) < limit:
                output += data
        if not stream.over and (stream.cut or not stream.suspect or not stream.wait_end(_CONFIRM)):
            raise failure("run", Category.TIMEOUT_AMBIGUOUS, "timeout_ambiguous")
        return stream.exit_code(), bytes(output[:limit])
