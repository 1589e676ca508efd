"""One command of the local driver: started, read, and ended with its whole process group."""

import os
import selectors
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Self

from worker.failures.model import EndedBy, Failure, OperationFailed
from worker.sandboxes.base import Completed
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.exits import decode_exit
from worker.sandboxes.local import groups

GRACE = 0.5
"""Seconds between TERM and KILL."""
CONFIRM = 5.0
"""Seconds a killed group may take to be gone; a process in an uninterruptible wait can take longer."""
DRAIN = 0.2
"""Seconds to read on after the command's end: a background child may hold the pipe for ever."""
_TICK = 0.05
"""Seconds between two looks at the deadline and the cancel signal."""
_CHUNK = 65536
"""Bytes per read: the capacity of a Linux pipe."""

_WATCHDOG = 'read -r pgid && ! read -r done && kill -KILL "-$pgid"'
"""Gets the group's id, then waits. The pipe closes when the worker dies, however it dies."""
_GATE = 'read -r go || exit 125; cd -- "$0" || exit 126; unset OLDPWD; exec "$@"'
"""Holds the command until its watchdog knows it. ``sh`` reads a pipe by bytes, so the rest is the command's."""


def end_group(group: int) -> None:
    """End a process group: TERM, grace, KILL, and see it gone.

    :raises OperationFailed: it does not go (``timeout_ambiguous``).
    """
    groups.send(group, signal.SIGTERM)
    if groups.gone_within(group, GRACE):
        return
    groups.send(group, signal.SIGKILL)
    if not groups.gone_within(group, CONFIRM):
        raise OperationFailed(Failure(operation="sandbox", stage="run", provider="local", reason="timeout_ambiguous"))


class Process:
    """A running command; leaving the ``with`` block ends whatever of it is left."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: str, stdin: bytes | None, limit: int) -> None:
        self._watchdog = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHDOG], stdin=subprocess.PIPE, env={}, cwd="/", start_new_session=True
        )
        self._main = subprocess.Popen(
            ["/bin/sh", "-c", _GATE, cwd, *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd="/",
            start_new_session=True,
        )
        self._limit = limit
        self._pending = memoryview(b"go\n" + (stdin or b""))
        self._out: dict[int, bytearray] = {}
        self._selector = selectors.DefaultSelector()
        self._pidfd = os.pidfd_open(self._main.pid)
        self._tell_watchdog(f"{self._main.pid}\n")
        self._register()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._main.returncode is None:
            groups.send(self._main.pid, signal.SIGKILL)
        self._main.wait()
        self._tell_watchdog("done\n")
        self._watchdog.communicate()
        self._selector.close()
        os.close(self._pidfd)
        for stream in self._streams():
            with suppress(BrokenPipeError):
                stream.close()

    @property
    def group(self) -> int:
        """The process group of the command and all it started."""
        return self._main.pid

    def finish(self, deadline: Deadline) -> Completed:
        """Read the command to its end, or end it."""
        while not (ended := deadline.ended_by() or self._over_limit()) and not self._exited():
            self._pump(min(_TICK, deadline.remaining()))
        if ended:
            end_group(self.group)
        self._drain()
        exit_code, name = decode_exit(self._main.wait())
        stdout, stderr = (bytes(buffer[: self._limit]) for buffer in self._out.values())
        return Completed(
            exit_code=exit_code,
            signal=name,
            ended_by=ended or self._over_limit() or (EndedBy.UNKNOWN if name else EndedBy.ITSELF),
            stdout=stdout,
            stderr=stderr,
        )

    def _streams(self) -> list[IO[bytes]]:
        streams = (self._main.stdin, self._main.stdout, self._main.stderr)
        return [stream for stream in streams if stream is not None]

    def _register(self) -> None:
        stdin, *outputs = self._streams()
        self._selector.register(self._pidfd, selectors.EVENT_READ)
        self._selector.register(stdin, selectors.EVENT_WRITE)
        for stream in outputs:
            self._out[stream.fileno()] = bytearray()
            self._selector.register(stream, selectors.EVENT_READ)
        for stream in self._streams():
            os.set_blocking(stream.fileno(), False)

    def _tell_watchdog(self, line: str) -> None:
        if self._watchdog.stdin is not None:
            with suppress(BrokenPipeError):
                self._watchdog.stdin.write(line.encode())
                self._watchdog.stdin.flush()

    def _exited(self) -> bool:
        # A look that reaps nothing: the zombie keeps the group's id from being used again.
        return os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _over_limit(self) -> EndedBy | None:
        return EndedBy.OUTPUT_LIMIT if any(len(out) > self._limit for out in self._out.values()) else None

    def _drain(self) -> None:
        end = Deadline.after(DRAIN)
        while end.remaining() and not self._over_limit() and self._reading():
            self._pump(end.remaining())

    def _reading(self) -> bool:
        return any(key.fd in self._out for key in self._selector.get_map().values())

    def _pump(self, timeout: float) -> None:
        for key, _ in self._selector.select(timeout):
            if key.fd in self._out:
                self._read(key.fd)
            elif key.fd == self._pidfd:
                self._selector.unregister(self._pidfd)
            else:
                self._write(key.fd)

    def _read(self, fd: int) -> None:
        chunk = os.read(fd, _CHUNK)
        if not chunk:
            self._selector.unregister(fd)
        self._out[fd] += chunk

    def _write(self, fd: int) -> None:
        try:
            self._pending = self._pending[os.write(fd, self._pending[:_CHUNK]) :]
        except BrokenPipeError:  # the command did not want the rest of it
            self._pending = self._pending[:0]
        if not self._pending and self._main.stdin is not None:
            self._selector.unregister(fd)
            self._main.stdin.close()
