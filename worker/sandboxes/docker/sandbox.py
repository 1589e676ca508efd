"""A sandbox that is a container."""

import errno
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import IO

from docker.errors import APIError, NotFound

from worker.failures.model import Category, EndedBy
from worker.sandboxes.base import MEBIBYTE, Completed
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.docker import files, scripts
from worker.sandboxes.docker.command import Command, Record, end_all, record_name
from worker.sandboxes.docker.container import LAYOUT
from worker.sandboxes.docker.engine import NAME, Engine, Engines
from worker.sandboxes.docker.faults import failure, is_lost, lost, lost_or_raised
from worker.sandboxes.docker.paths import raise_errno, split
from worker.sandboxes.docker.removal import remove
from worker.sandboxes.docker.stream import helper
from worker.sandboxes.environment import built_env, checked_argv

_NUMBER = re.compile(rb"[0-9]{1,11}")
_OOM_KILLS = re.compile(rb"^oom_kill ([0-9]{1,9})$", re.MULTILINE)
_DYING = 0.3
"""Seconds in which the engine admits that a container whose processes were killed has ended."""
_MODES = {LAYOUT.workspace: 0o755, LAYOUT.repos: 0o755, LAYOUT.scratch: 0o700, f"{LAYOUT.scratch}/exec": 0o700}
SEGMENT = 64 * MEBIBYTE
"""Bytes of a file that are read at once, onto the worker's disk; one exec of 40 ms each."""
_IDENTITY = re.compile(rb"([0-9]{1,18}) ([0-9:]{1,64})")
"""What :data:`scripts.READ` says of a file: its size, and its device and inode."""


class DockerSandbox:
    """A container with our labels. Commands run as the image's user."""

    provider = NAME
    layout = LAYOUT

    def __init__(self, engines: Engines, container: str, labels: Mapping[str, str]) -> None:
        self._engines = engines
        self._labels = dict(labels)
        self._owner: files.Owner | None = None
        self._oom_kills = 0
        self._tag = ""
        self.id = container

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels it was created with."""
        return dict(self._labels)

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
        with self._engine(deadline, "run") as engine:
            record = self._record(has_stdin=stdin is not None)
            if stdin is not None:
                with files.spooled(stdin) as spool:
                    self._put(engine, (record.directory, record.stdin_name), spool, 0o600, deadline)
            command = Command(
                engine, self.id, argv, env=built, cwd=cwd or LAYOUT.workspace, record=record, deadline=deadline
            )
            return self._finished(engine, command, output_limit, deadline)

    def write(self, path: str, data: bytes | Iterable[bytes], *, deadline: Deadline, mode: int = 0o600) -> None:
        """See :meth:`worker.sandboxes.base.Sandbox.write`."""
        directory, name = split(path)
        temporary = f".sandferry-{secrets.token_hex(8)}"
        with files.spooled(_until(deadline, data)) as spool, self._engine(deadline, "write") as engine:
            self._put(engine, (directory, temporary), spool, mode, deadline)
            place = (scripts.PLACE, f"{directory}/{temporary}", f"{directory}/{name}")
            code, _ = helper(engine, self.id, *place, deadline=deadline)
            raise_errno(code, "write")

    def read(self, path: str, *, deadline: Deadline, offset: int = 0) -> Iterator[bytes]:
        """See :meth:`worker.sandboxes.base.Sandbox.read`. A file that is replaced meanwhile is ``file_replaced``."""
        split(path)
        first = None
        while True:
            with files.spooled(b"") as spool:
                size, file = self._segment(path, offset, spool, deadline)
                if file != (first := first or file):
                    raise failure("read", Category.CORRUPT_DATA, "file_replaced")
                length = spool.tell()
                spool.seek(0)
                while chunk := spool.read(MEBIBYTE):
                    yield chunk
            if length < min(SEGMENT, size - offset):
                raise failure("read", Category.TRANSIENT_NETWORK, "stream_cut")
            offset += length
            if length < SEGMENT:
                return

    def _segment(self, path: str, offset: int, spool: IO[bytes], deadline: Deadline) -> tuple[int, bytes]:
        """Bring at most :data:`SEGMENT` bytes into ``spool``; the size of the file, and which file it is.

        An exec for each, and all of it before anybody sees a byte: an engine whose client pauses holds up what
        else goes on in the container, and ends the stream after a while and calls it complete.
        """
        argv = ["/bin/sh", "-c", scripts.READ, "sandferry", path, str(offset + 1), str(SEGMENT)]
        with self._engine(deadline, "read") as engine:
            record = self._record()
            command = Command(engine, self.id, argv, env=built_env(), cwd="/", record=record, deadline=deadline)
            done = self._finished(engine, command, SEGMENT, deadline, into=spool)
        if done.ended_by is not EndedBy.ITSELF:
            deadline.check("sandbox", "read")
        raise_errno(1 if done.exit_code is None else done.exit_code, "read")
        if (about := _IDENTITY.fullmatch(done.stderr.strip())) is None:
            raise failure("read", Category.UNKNOWN, "helper_failed")
        return int(about[1]), about[2]

    def mark(self, tag: str) -> None:
        """See :meth:`worker.sandboxes.base.Sandbox.mark`."""
        self._tag = tag

    def end_commands(self, tag: str, *, deadline: Deadline) -> None:
        """See :meth:`worker.sandboxes.base.Sandbox.end_commands`."""
        with self._engine(deadline, "run") as engine:
            end_all(engine, self.id, f"{LAYOUT.scratch}/exec", tag, deadline)

    def keep_alive(self, seconds: float, *, deadline: Deadline) -> None:  # noqa: ARG002 - an engine ends none by itself
        """See :meth:`worker.sandboxes.base.Sandbox.keep_alive`."""
        with self._engine(deadline, "keep_alive") as engine:
            if is_lost(engine, self.id):
                raise lost("keep_alive")

    def release(self, *, deadline: Deadline) -> None:
        """See :meth:`worker.sandboxes.base.Sandbox.release`."""
        engine = self._engines.get(deadline)
        with engine.within(deadline, "release"):
            remove(engine, self.id, deadline)

    def prepare(self, *, deadline: Deadline) -> None:
        """Check the layout, and make what is missing of it: a create may have been cut short.

        :raises OperationFailed: it cannot be made (``layout_invalid``), or the container is gone.
        """
        with self._engine(deadline, "prepare") as engine:
            if missing := self._missing(engine, deadline):
                owner = self._resolve_owner(engine, deadline)
                engine.put_archive(self.id, "/", files.directory_archive(missing, owner))
                if self._missing(engine, deadline):
                    raise failure("prepare", Category.INVALID_REQUEST, "layout_invalid")

    def _missing(self, engine: Engine, deadline: Deadline) -> dict[str, int]:
        code, output = helper(engine, self.id, scripts.LAYOUT, *_MODES, deadline=deadline)
        if code:
            raise failure("prepare", Category.INVALID_REQUEST, "layout_invalid")
        absent = output.decode(errors="replace").splitlines()
        return {path: mode for path, mode in _MODES.items() if path in absent}

    @contextmanager
    def _engine(self, deadline: Deadline, stage: str) -> Iterator[Engine]:
        engine = self._engines.get(deadline)
        with engine.within(deadline, stage):
            try:
                yield engine
            except APIError as exc:
                raise lost_or_raised(engine, self.id, stage, exc) from exc

    def _record(self, *, has_stdin: bool = False) -> Record:
        return Record(f"{LAYOUT.scratch}/exec", record_name(self._tag), has_stdin=has_stdin)

    def _finished(
        self, engine: Engine, command: Command, limit: int, deadline: Deadline, into: IO[bytes] | None = None
    ) -> Completed:
        with command:
            completed = command.finish(limit, into)
        return self._explained(engine, completed, deadline)

    def _explained(self, engine: Engine, completed: Completed, deadline: Deadline) -> Completed:
        """Who sent a KILL that was not ours: the end of the container, its memory limit, or nobody knows."""
        if completed.signal != "SIGKILL" or completed.ended_by is not EndedBy.UNKNOWN:
            return completed
        if deadline.wait(_DYING, lambda: is_lost(engine, self.id)):
            raise lost("run")
        _, counters = helper(engine, self.id, scripts.OOM, deadline=deadline)
        kills = sum(int(count) for count in _OOM_KILLS.findall(counters))
        known, self._oom_kills = self._oom_kills, kills
        return replace(completed, reason="out_of_memory") if kills > known else completed

    def _put(self, engine: Engine, place: tuple[str, str], file: IO[bytes], mode: int, deadline: Deadline) -> None:
        directory, name = place
        owner = self._resolve_owner(engine, deadline)
        try:
            engine.put_archive(self.id, directory, _until(deadline, files.file_archive(name, file, owner, mode)))
        except NotFound as exc:
            if is_lost(engine, self.id):
                raise
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from exc

    def _resolve_owner(self, engine: Engine, deadline: Deadline) -> files.Owner:
        if self._owner is None:
            _, output = helper(engine, self.id, "id -u; id -g", deadline=deadline)
            numbers = [int(line) for line in output.split() if _NUMBER.fullmatch(line)]
            self._owner = files.Owner(*numbers) if len(numbers) == 2 else files.Owner()
        return self._owner


def _until(deadline: Deadline, data: bytes | Iterable[bytes]) -> Iterator[bytes]:
    for chunk in [data] if isinstance(data, bytes) else data:
        deadline.check("sandbox", "write")
        yield chunk
