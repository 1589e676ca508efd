"""The e2b SDK, asynchronous, with its traps closed (ADR 0030)."""

import math
import os
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import IO, Any

from worker.failures.model import Category, Failure
from worker.sandboxes.base import Spec
from worker.sandboxes.e2b.faults import e2b_facts
from worker.sandboxes.hosted.cloud import About, NameTakenError, State
from worker.sandboxes.hosted.faults import failure
from worker.sandboxes.settings import E2BSettings

NAME = "e2b"
_ID = re.compile(r"[a-z0-9]{16,40}")
_CALL = 30.0
"""Seconds an answer of the control plane may take."""
_CONFLICT = 409
"""Status of a create whose key was used before, for another body, or whose outcome the server does not know
(``idempotency_*`` of ``e2b/api/client/models/error.py``; the SDK drops that code)."""
_ANSWER = 256 * 1024
"""Bytes of output kept of one command: the launcher's answer is under 140 KiB."""

_first_user = 0
"""The process that called the SDK first. Its transport does not survive a fork: a child would hang for ever."""


@cache
def _sdk() -> Any:
    import e2b  # noqa: PLC0415 - on first use, in the process that uses it

    return e2b


class E2BCloud:
    """One E2B account."""

    name = NAME

    def __init__(self, settings: E2BSettings) -> None:
        self._settings = settings
        self._handles: dict[str, Any] = {}

    def is_id(self, text: str) -> bool:
        """See :meth:`Cloud.is_id`."""
        return _ID.fullmatch(text) is not None

    async def list(self, labels: Mapping[str, str]) -> "list[About]":
        """See :meth:`Cloud.list`."""
        query = self._e2b.SandboxQuery(metadata=dict(labels)) if labels else None
        pages = self._e2b.AsyncSandbox.list(query=query, **self._options())
        found = []
        while pages.has_next:
            found += [_about(item) for item in await pages.next_items()]
        return found

    async def about(self, sandbox_id: str) -> About | None:
        """See :meth:`Cloud.about`."""
        try:
            return _about(await self._e2b.AsyncSandbox.get_info(sandbox_id, **self._options()))
        except self._e2b.SandboxNotFoundException:
            return None

    async def create(self, spec: Spec, labels: Mapping[str, str], *, key: str, seconds: float) -> str:
        """See :meth:`Cloud.create`."""
        try:
            made = await self._e2b.AsyncSandbox.create(
                spec.image or self._settings.template,
                timeout=self._lease(spec.ttl),
                metadata=dict(labels),
                envs=dict(spec.env),
                idempotency_key=f"sandferry-{key}",
                **self._options(seconds),
            )
        except self._e2b.SandboxException as exc:
            if exc.status_code == _CONFLICT:
                raise NameTakenError from exc
            raise
        self._handles[made.sandbox_id] = made
        return str(made.sandbox_id)

    async def kill(self, sandbox_id: str) -> None:
        """See :meth:`Cloud.kill`."""
        await self._e2b.AsyncSandbox.kill(sandbox_id, **self._options())
        self._handles.pop(sandbox_id, None)

    async def extend(self, sandbox_id: str, seconds: float) -> None:
        """See :meth:`Cloud.extend`."""
        await self._e2b.AsyncSandbox.set_timeout(sandbox_id, self._lease(seconds), **self._options())

    async def execute(self, sandbox_id: str, command: str, env: Mapping[str, str], seconds: float) -> tuple[int, str]:
        """See :meth:`Cloud.execute`."""
        pieces: deque[str] = deque()
        size = 0

        def keep(piece: str) -> None:
            """The end of the output: a login shell may say anything before the answer."""
            nonlocal size
            pieces.append(piece)
            size += len(piece)
            while size - len(pieces[0]) > _ANSWER:
                size -= len(pieces.popleft())

        handle = await self._handle(sandbox_id)
        try:
            done = await handle.commands.run(
                command, envs=dict(env), timeout=seconds, on_stdout=keep, retain_output=False, cwd="/"
            )
        except self._e2b.CommandExitException as exc:
            return exc.exit_code, "".join(pieces)
        return done.exit_code, "".join(pieces)

    async def upload(self, sandbox_id: str, path: str, file: IO[bytes]) -> None:
        """See :meth:`Cloud.upload`."""
        handle = await self._handle(sandbox_id)
        await handle.files.write(path, file)

    async def download(self, sandbox_id: str, path: str) -> AsyncIterator[bytes]:
        """See :meth:`Cloud.download`."""
        handle = await self._handle(sandbox_id)
        stream = await handle.files.read(path, format="stream")
        try:
            async for chunk in stream:
                yield bytes(chunk)
        finally:
            with suppress(Exception):  # already over
                await stream.aclose()

    def facts(self, exc: BaseException, *, operation: str, stage: str) -> Failure:
        """See :meth:`Cloud.facts`."""
        return e2b_facts(exc, operation=operation, stage=stage)

    @property
    def _e2b(self) -> Any:
        global _first_user  # noqa: PLW0603 - the SDK's transport is one per process, so is what guards it
        _first_user = _first_user or os.getpid()
        if _first_user != os.getpid():
            raise failure(NAME, "connect", Category.UNKNOWN, "sdk_used_before_fork")
        return _sdk()

    async def _handle(self, sandbox_id: str) -> Any:
        if sandbox_id not in self._handles:
            # connect() sets a lease: give it what is left, so that neither it nor a default shortens one.
            info = await self._e2b.AsyncSandbox.get_info(sandbox_id, **self._options())
            left = max(1, math.ceil(_epoch(info.end_at) - time.time()))
            connect = self._e2b.AsyncSandbox.connect
            self._handles[sandbox_id] = await connect(sandbox_id, timeout=left, **self._options())
        return self._handles[sandbox_id]

    def _lease(self, seconds: float) -> int:
        """Whole seconds, at most what the account's plan allows."""
        return max(1, min(math.ceil(seconds), self._settings.lease_max))

    def _options(self, seconds: float = _CALL) -> dict[str, Any]:
        """What every call of the control plane is given.

        ``request_timeout`` is halved: the SDK's transport adds its read and its write timeout up. No retries of the
        SDK's: it would repeat a create, and wait past our deadline.
        """
        settings = self._settings
        return {
            "api_key": settings.api_key(),
            "domain": settings.domain,
            "api_url": settings.api_url,
            "sandbox_url": settings.sandbox_url,
            "request_timeout": max(0.1, min(_CALL, seconds) / 2),
            "retries": 0,
        }


def _epoch(time_: datetime) -> float:
    return time_.timestamp()


def _about(info: Any) -> About:
    return About(
        id=info.sandbox_id,
        labels=dict(info.metadata or {}),
        created=_epoch(info.started_at),
        lease_until=_epoch(info.end_at),
        state=State.RUNNING,  # a paused one resumes when it is used
    )
