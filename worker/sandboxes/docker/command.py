"""A command in a container: run to its end, or ended with its whole process group."""

import hashlib
import io
import math
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Self

from worker.failures.model import Category, EndedBy
from worker.sandboxes.base import Completed
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.docker import scripts
from worker.sandboxes.docker.engine import Engine
from worker.sandboxes.docker.faults import failure
from worker.sandboxes.docker.frames import STDERR, STDOUT
from worker.sandboxes.docker.stream import ExecStream, helper
from worker.sandboxes.exits import decode_exit

GRACE = 0.5
"""Seconds between TERM and KILL."""
CONFIRM = 5.0
"""Seconds a killed group may take to be gone."""
_TENTHS = tuple(str(round(seconds * 10)) for seconds in (GRACE, CONFIRM))
"""Both, as our scripts take them."""
_NOT_BEGUN = 125
"""What :data:`scripts.WRAPPER` exits with when nothing was begun; a command may do so too."""
_SLACK = 5
"""Seconds the watchdog inside waits longer than we do, so that we are the ones who end a command."""


@dataclass(frozen=True, slots=True)
class Record:
    """Where a command is written down inside its container, and where its stdin lies."""

    directory: str
    name: str
    has_stdin: bool = False

    @property
    def path(self) -> str:
        """The file that holds the leader's pid and start time."""
        return f"{self.directory}/{self.name}"

    @property
    def stdin_name(self) -> str:
        """The name of the stdin file in the directory; END removes it with the record."""
        return f"{self.name}.in"

    @property
    def stdin(self) -> str:
        """What the command reads."""
        return f"{self.directory}/{self.stdin_name}" if self.has_stdin else "/dev/null"


def record_name(tag: str) -> str:
    """A new name for the record of a command of ``tag``; a tag is anything, so its digest stands for it."""
    return f"{_digest(tag)}.{secrets.token_hex(16)}"


def end_all(engine: Engine, container: str, directory: str, tag: str, deadline: Deadline) -> None:
    """End every recorded command of ``tag`` with its process group, and see them gone.

    :raises OperationFailed: nobody could confirm it (``timeout_ambiguous``).
    """
    pattern = (directory, _digest(tag))
    code, _ = helper(engine, container, scripts.END_ALL, *pattern, scripts.END, *_TENTHS, deadline=deadline)
    if code != 0:
        raise failure("run", Category.TIMEOUT_AMBIGUOUS, "timeout_ambiguous")


def _digest(tag: str) -> str:
    return hashlib.sha256(tag.encode()).hexdigest()[:32]


def _whole(stream: IO[bytes]) -> bytes:
    stream.seek(0)
    return stream.read()


class Command:
    """One command; leaving the ``with`` block ends it if it has not ended."""

    def __init__(
        self,
        engine: Engine,
        container: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        record: Record,
        deadline: Deadline,
    ) -> None:
        self._engine = engine
        self._container = container
        self._deadline = deadline
        self._record = record.path
        seconds = str(math.ceil(deadline.remaining()) + _SLACK)
        wrapper = ["/bin/sh", "-c", scripts.WRAPPER, "sandferry", record.path, seconds, record.stdin, cwd, *argv]
        self._ended = False
        self._stream: ExecStream | None = None
        try:
            self._stream = ExecStream(engine, container, wrapper, env, deadline)
        except BaseException:
            self._end_quietly()  # it may have been started all the same
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        if not self._started.over and not self._ended:
            self._end_quietly()
        self._started.close()

    @property
    def _started(self) -> ExecStream:
        if self._stream is None:
            raise RuntimeError("not started")
        return self._stream

    def finish(self, limit: int, into: IO[bytes] | None = None) -> Completed:
        """Collect at most ``limit`` bytes of each stream and how it ended; stdout goes ``into`` a file, if given.

        :raises OperationFailed: it could not be begun, the stream was cut (``stream_cut``), or the end of a command
            that had to be ended could not be confirmed (``timeout_ambiguous``).
        """
        out: dict[int, IO[bytes]] = {STDOUT: into or io.BytesIO(), STDERR: io.BytesIO()}
        left = dict.fromkeys(out, limit)
        ended: EndedBy | None = None
        for kind, data in self._started.frames():
            out[kind].write(data[: left[kind]])
            left[kind] -= len(data)
            if left[kind] < 0:
                ended = EndedBy.OUTPUT_LIMIT
                break
        if ended is None:
            self._judge()
        if self._started.over:
            exit_code, signal = decode_exit(self._started.exit_code())
            by = EndedBy.UNKNOWN if signal else EndedBy.ITSELF
        else:
            exit_code, signal = None, self.end()
            by = ended or self._deadline.ended_by() or EndedBy.UNKNOWN
        stdout, stderr = (b"" if stream is into else _whole(stream) for stream in out.values())
        if exit_code == _NOT_BEGUN:
            self._raise_if_refused(stderr.decode(errors="replace"))
        return Completed(exit_code=exit_code, signal=signal, ended_by=by, stdout=stdout, stderr=stderr)

    def end(self) -> str | None:
        """End the process group: TERM, grace, KILL, and see it gone. The last signal it took, if it took one.

        :raises OperationFailed: nobody could confirm it (``timeout_ambiguous``).
        """
        self._ended = True
        if self._stream is not None:
            # An engine whose client does not read holds back every exit of this container, our helper's too.
            self._stream.close()
        patience = Deadline.after(GRACE + CONFIRM + _SLACK)
        with self._engine.within(patience, "run"):
            code, sent = helper(self._engine, self._container, scripts.END, self._record, *_TENTHS, deadline=patience)
        if code != 0:
            raise failure("run", Category.TIMEOUT_AMBIGUOUS, "timeout_ambiguous")
        return sent.decode("ascii", "replace").strip() or None

    def _raise_if_refused(self, said: str) -> None:
        """Raise if its record could not be written: a full disk says so; else somebody took our scratch away."""
        begin, found, why = said.partition(f"refused {self._record} ")
        if begin or not found:
            return
        if any(words in why for words in ("Not a directory", "No such file", "File exists")):
            raise failure("run", Category.INVALID_REQUEST, "layout_invalid", text=why)
        raise failure("run", None, None, text=why)

    def _judge(self) -> None:
        """Tell a command that is over, and not recorded as such yet, from a stream that was cut."""
        stream = self._started
        if not stream.suspect:
            return
        code, _ = helper(self._engine, self._container, scripts.ALIVE, self._record, deadline=self._deadline)
        if stream.cut or code == 0:
            raise failure("run", Category.TRANSIENT_NETWORK, "stream_cut")
        stream.over = stream.wait_end(CONFIRM)

    def _end_quietly(self) -> None:
        with suppress(Exception):  # the exception on its way tells more; the watchdog inside remains
            self.end()
