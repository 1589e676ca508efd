"""Git on this worker, on data that a sandbox made.

No configuration but ours, no hook, filter, pager, prompt, protocol or attribute of anybody; bounded CPU time,
address space, file size and output; ended with its process group when the deadline passes.
"""

import os
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, BinaryIO

from worker.failures.model import Category, EndedBy, Failure, OperationFailed
from worker.imports.git_environment import built
from worker.imports.limits import MEBIBYTE, OPERATION, Limits
from worker.sandboxes.deadline import Deadline

_LIMITED = 'ulimit -t "$1" && ulimit -v "$2" && ulimit -f "$3" || exit 125; shift 3; exec "$@"'
"""Set by the shell, not by ``preexec_fn``, which may deadlock in a process with threads."""
_TEXT = 65536
"""Bytes kept of a command's errors."""
_TICK = 0.05
"""Seconds between two looks at the deadline."""
_CHUNK = 65536
_TOO_BIG = frozenset({"SIGXCPU", "SIGXFSZ", "SIGKILL"})
"""How a process ends that passes its limits; past the hard CPU limit the kernel kills."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a command left: its exit code, its output, the end of its errors (hostile text, never sent on)."""

    exit_code: int
    stdout: bytes = field(repr=False)
    stderr: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostGit:
    """Git in the bare or other git directory ``git_dir``; ``alternates`` are object directories it may read."""

    git_dir: Path
    limits: Limits
    deadline: Deadline
    alternates: tuple[Path, ...] = ()

    def borrowing(self, *objects: Path) -> "HostGit":
        """The same, with these object directories to read from."""
        return replace(self, alternates=objects)

    def run(
        self,
        *args: str,
        stage: str,
        stdin: bytes | BinaryIO = b"",
        output_limit: int = 16 * MEBIBYTE,
        env: Mapping[str, str] | None = None,
    ) -> Output:
        """Run a command to its end. A non-zero exit is no error, a signal is.

        :raises OperationFailed: the deadline, a limit or ``output_limit`` (``output_limit``, policy) ended it.
        """
        with self.started(*args, stage=stage, stdin=stdin, env=env) as command:
            out = bytearray()
            for chunk in command.chunks():
                out += chunk
                if len(out) > output_limit:
                    raise self.failure(stage, category=Category.POLICY_DENIED, reason="output_limit")
            return command.finish(bytes(out))

    def ask(self, *args: str, stage: str, stdin: bytes | BinaryIO = b"", env: Mapping[str, str] | None = None) -> bytes:
        """Run a command that must succeed; its output.

        :raises OperationFailed: it did not; the classifier may read its text.
        """
        done = self.run(*args, stage=stage, stdin=stdin, env=env)
        if done.exit_code:
            raise self.failure(stage, exit_code=done.exit_code, text=done.stderr.decode(errors="replace"))
        return done.stdout

    @contextmanager
    def started(
        self, *args: str, stage: str, stdin: bytes | BinaryIO | None = b"", env: Mapping[str, str] | None = None
    ) -> Iterator["Command"]:
        """Start a command whose output is read as it comes; leaving the block ends it. ``stdin=None``: a pipe."""
        with tempfile.TemporaryFile() as errors, _readable(stdin) as given:
            process = subprocess.Popen(
                ["/bin/sh", "-c", _LIMITED, "sandferry-git", *self._ulimits(), "git", *args],
                stdin=subprocess.PIPE if given is None else given,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**built(self.git_dir, self.alternates), **(env or {})},
                cwd=self.git_dir,
                start_new_session=True,
            )
            command = Command(self, stage, process, errors)
            try:
                yield command
            finally:
                command.close()

    def failure(self, stage: str, **facts: object) -> OperationFailed:
        """A failure of git on this worker."""
        known = {"operation": OPERATION, "stage": stage, "program": "git", **facts}
        return OperationFailed(Failure(**known))  # type: ignore[arg-type]

    def _ulimits(self) -> Sequence[str]:
        bounds = self.limits
        return str(bounds.cpu), str(bounds.address_space // 1024), str(bounds.file_size // 512)


class Command:
    """A running git."""

    def __init__(self, git: HostGit, stage: str, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        self._git = git
        self._stage = stage
        self._process = process
        self._errors = errors
        self._selector = selectors.DefaultSelector()
        if process.stdout is not None:
            self._selector.register(process.stdout, selectors.EVENT_READ)

    def chunks(self) -> Iterator[bytes]:
        """Its output, to the end."""
        while chunk := self.read():
            yield chunk

    def read(self) -> bytes:
        """The next bytes of its output, empty at the end."""
        stdout = self._process.stdout
        while stdout is not None:
            self._check()
            if self._selector.select(_TICK):
                return os.read(stdout.fileno(), _CHUNK)
        return b""

    def write(self, data: bytes) -> None:
        """Give it a short line of input; git reads such lines as they come."""
        if self._process.stdin is not None:
            self._process.stdin.write(data)
            self._process.stdin.flush()

    def finish(self, stdout: bytes) -> Output:
        """Wait for its end.

        :raises OperationFailed: a signal ended it.
        """
        while True:
            self._check()
            with suppress(subprocess.TimeoutExpired):
                code = self._process.wait(_TICK)
                break
        if code < 0:
            raise self._killed(signal.Signals(-code).name)
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - _TEXT))
        return Output(code, stdout, self._errors.read())

    def close(self) -> None:
        """End it, and whatever it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._selector.close()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()

    def _check(self) -> None:
        self._git.deadline.check(OPERATION, self._stage)

    def _killed(self, name: str) -> OperationFailed:
        if name in _TOO_BIG:
            return self._git.failure(self._stage, category=Category.POLICY_DENIED, reason="process_limit", signal=name)
        return self._git.failure(self._stage, signal=name, ended_by=EndedBy.UNKNOWN)


@contextmanager
def _readable(stdin: bytes | BinaryIO | None) -> Iterator[BinaryIO | None]:
    """A file with these bytes: whoever reads it can be slow without anybody waiting."""
    if not isinstance(stdin, bytes):
        yield stdin
        return
    with tempfile.TemporaryFile() as file:
        file.write(stdin)
        file.seek(0)
        yield file
