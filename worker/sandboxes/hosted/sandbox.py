"""A sandbox of a hosted provider."""

import base64
import re
import secrets
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from posixpath import basename, dirname, isabs
from typing import IO

from worker.failures.model import Category, InvalidRequest
from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN, MEBIBYTE, Completed, Layout
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.environment import built_env, checked_argv
from worker.sandboxes.hosted import scripts
from worker.sandboxes.hosted.cloud import About, Cloud, State
from worker.sandboxes.hosted.command import Command, Job, end_all, nonce_of
from worker.sandboxes.hosted.faults import failure, lost
from worker.sandboxes.hosted.hands import Hands
from worker.sandboxes.hosted.loop import Loop
from worker.sandboxes.labels import matches

_HOME = re.compile(r"^home (/[A-Za-z0-9._/-]{0,512})\r?$", re.MULTILINE)
_TOOL_MISSING = 3
_SWEEP = 8
"""Commands whose files are removed together: an `rm` each would cost every command a process."""
_EMPTY = 10


class HostedSandbox:
    """A sandbox with our labels. Commands run as the provider's user; everything of ours lies in its home."""

    def __init__(self, cloud: Cloud, loop: Loop, about: About) -> None:
        self.id = about.id
        self.provider = cloud.name
        self._cloud = cloud
        self._loop = loop
        self._hands = Hands(cloud, loop, about.id)
        self._about = about
        self._layout: Layout | None = None
        self._answered: list[str] = []
        self._tag = ""

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels it was created with."""
        return dict(self._about.labels)

    @property
    def layout(self) -> Layout:
        """Where things lie inside; asked of the sandbox once."""
        return self._layout or self.prepare(deadline=Deadline.after(30.0))

    def prepare(self, *, deadline: Deadline, env: Mapping[str, str] | None = None) -> Layout:
        """Check the layout, and make what is missing of it; ``env`` becomes part of every command's environment.

        :raises OperationFailed: it cannot be made (``layout_invalid``), or the sandbox lacks a tool we need.
        """
        given = {} if env is None else {"SANDFERRY_ENV": scripts.exports(env)}
        code, text = self._hands.script(scripts.LAYOUT, env=given, deadline=deadline, stage="prepare")
        found = _HOME.search(text)
        if code == _TOOL_MISSING:
            raise failure(self.provider, "prepare", Category.INVALID_REQUEST, "program_missing")
        if code or found is None:
            raise failure(self.provider, "prepare", Category.INVALID_REQUEST, "layout_invalid", text)
        home = found[1].rstrip("/")
        self._layout = Layout(workspace=f"{home}/workspace", repos=f"{home}/repos", scratch=f"{home}/.sandferry")
        return self._layout

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline: Deadline,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bytes | None = None,
        output_limit: int = MEBIBYTE,
    ) -> Completed:
        """See :meth:`worker.sandboxes.base.Sandbox.run`."""
        argv, built = checked_argv(argv), built_env(env)
        deadline.check("sandbox", "run")
        job = Job(self._directory, argv, built, cwd or self.layout.workspace, stdin, output_limit)
        command = Command(self._hands, job, nonce_of(self._tag), deadline)
        answered, self._answered = self._answered, []
        if len(answered) < _SWEEP:
            answered, self._answered = [], answered
        completed = command.run(answered)
        self._answered.append(command.nonce)
        return completed

    def write(self, path: str, data: bytes | Iterable[bytes], *, deadline: Deadline, mode: int = 0o600) -> None:
        """See :meth:`worker.sandboxes.base.Sandbox.write`."""
        directory, name = _split(path)
        deadline.check("sandbox", "write")
        nonce = secrets.token_hex(16)
        uploaded = f"{self._directory}/up/{nonce}"
        with _spooled(_until(deadline, data)) as file:
            env = {}
            if file.seek(0, 2) <= scripts.INLINE:
                file.seek(0)
                env["SANDFERRY_DATA"] = base64.b64encode(file.read()).decode()
            else:
                self._hands.upload(uploaded, file, deadline=deadline, stage="write")
        args = (uploaded, directory, name, f"{mode:o}", nonce)
        code, text = self._hands.script(scripts.PLACE, *args, env=env, deadline=deadline, stage="write")
        self._hands.raise_errno(code, text, "write")

    def read(self, path: str, *, deadline: Deadline, offset: int = 0) -> Iterator[bytes]:
        """See :meth:`worker.sandboxes.base.Sandbox.read`.

        The providers cannot seek: what is before ``offset`` is transferred and dropped.
        """
        _split(path)
        deadline.check("sandbox", "read")

        def explain() -> bool:
            # SDKs differ in what they call a missing file, and one takes an empty file for a failure.
            code, text = self._hands.script(scripts.WHY, path, deadline=deadline, stage="read")
            if code != _EMPTY:
                self._hands.raise_errno(code, text, "read")
            return code == _EMPTY

        skip = offset
        for chunk in self._hands.download(path, deadline=deadline, stage="read", explain=explain):
            if rest := chunk[skip:]:
                yield rest
            skip = max(0, skip - len(chunk))

    def mark(self, tag: str) -> None:
        """See :meth:`worker.sandboxes.base.Sandbox.mark`."""
        self._tag = tag

    def end_commands(self, tag: str, *, deadline: Deadline) -> None:
        """See :meth:`worker.sandboxes.base.Sandbox.end_commands`."""
        deadline.check("sandbox", "run")
        end_all(self._hands, self._directory, tag, deadline)

    def keep_alive(self, seconds: float, *, deadline: Deadline) -> None:
        """See :meth:`worker.sandboxes.base.Sandbox.keep_alive`."""
        if self._current(deadline, "keep_alive").lease_until < time.time() + seconds:
            self._hands.once(lambda: self._cloud.extend(self.id, seconds), deadline, "keep_alive")

    def lease_until(self, *, deadline: Deadline) -> float:
        """When the provider ends it by itself, in seconds since the epoch."""
        return self._current(deadline, "lease_until").lease_until

    def release(self, *, deadline: Deadline) -> None:
        """See :meth:`worker.sandboxes.base.Sandbox.release`.

        Another with the same labels lost a race of creates and came to light too late for the winner to see.
        """
        self._kill(self.id, deadline)
        if LABEL_RUN in self._about.labels and LABEL_REQUEST in self._about.labels:
            wanted = {name: self._about.labels[name] for name in (LABEL_RUN, LABEL_REQUEST)}
            for other in self._hands.repeated(lambda: self._cloud.list(wanted), deadline, "release", needs_it=False):
                if matches(other.labels, wanted) and other.id != self.id:
                    self._kill(other.id, deadline)

    def _kill(self, sandbox_id: str, deadline: Deadline) -> None:
        self._hands.repeated(lambda: self._cloud.kill(sandbox_id), deadline, "release", needs_it=False)

    @property
    def _directory(self) -> str:
        return f"{self.layout.scratch}/exec"

    def _current(self, deadline: Deadline, stage: str) -> About:
        about = self._hands.repeated(lambda: self._cloud.about(self.id), deadline, stage)
        if about is None or about.state is State.DEAD:
            raise lost(self.provider, stage)
        return about


def _split(path: str) -> tuple[str, str]:
    """Directory and name of an absolute path."""
    if not isabs(path) or "\0" in path or basename(path) in ("", ".", ".."):
        raise InvalidRequest("path", "malformed")
    return dirname(path), basename(path)


def _spooled(chunks: Iterable[bytes]) -> IO[bytes]:
    """The data in a file, on disk above a mebibyte, so that an upload can be repeated."""
    spool = tempfile.SpooledTemporaryFile(max_size=MEBIBYTE)  # noqa: SIM115 - the caller closes it
    for chunk in chunks:
        spool.write(chunk)
    return spool


def _until(deadline: Deadline, data: bytes | Iterable[bytes]) -> Iterator[bytes]:
    for chunk in [data] if isinstance(data, bytes) else data:
        deadline.check("sandbox", "write")
        yield chunk
