"""The daytona SDK, asynchronous, with its traps closed (ADR 0031)."""

import math
import os
import re
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from functools import cache
from typing import IO, Any

from worker.failures.model import Failure
from worker.sandboxes.base import Spec
from worker.sandboxes.daytona.faults import daytona_facts
from worker.sandboxes.hosted.cloud import About, NameTakenError, State
from worker.sandboxes.settings import DaytonaSettings

NAME = "daytona"
MINUTE = 60.0
"""Seconds of Daytona's unit of leases."""
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_CALL = 30.0
"""Seconds an answer of the API may take."""
_TRANSFER = 24 * 3600
"""Seconds the SDK may take for a file: our own deadline is the one that counts."""
_STATES = {
    "started": State.RUNNING,
    **dict.fromkeys(
        ("creating", "starting", "restoring", "resuming", "pending_build", "building_snapshot", "pulling_snapshot",
         "unknown", "resizing"),
        State.STARTING,
    ),
}  # fmt: skip
"""Every other state is dead to us: stopped, archived, error, destroying."""
_GONE = ("destroyed", "destroying")


@cache
def _sdk() -> Any:
    import daytona  # noqa: PLC0415 - on first use, in the process that uses it

    return daytona


class DaytonaCloud:
    """One Daytona organization; one client a process and event loop, made on first use."""

    name = NAME

    def __init__(self, settings: DaytonaSettings) -> None:
        self._settings = settings
        self._owner = 0
        self._client: Any = None
        self._handles: dict[str, Any] = {}

    def is_id(self, text: str) -> bool:
        """See :meth:`Cloud.is_id`."""
        return _ID.fullmatch(text) is not None

    async def list(self, labels: Mapping[str, str]) -> "list[About]":
        """See :meth:`Cloud.list`."""
        query = _sdk().ListSandboxesQuery(labels=dict(labels) or None)
        listed = [_about(item) async for item in self._daytona.list(query, request_timeout=_CALL)]
        return [about for about in listed if about is not None]

    async def about(self, sandbox_id: str) -> About | None:
        """See :meth:`Cloud.about`."""
        try:
            return _about(await self._daytona.get(sandbox_id, request_timeout=_CALL))
        except _sdk().DaytonaNotFoundError:
            return None

    async def create(self, spec: Spec, labels: Mapping[str, str], *, key: str, seconds: float) -> str:
        """See :meth:`Cloud.create`. The key is the name: names are unique in an organization."""
        params = _sdk().CreateSandboxFromSnapshotParams(
            name=f"sandferry-{key}",
            snapshot=spec.image or self._settings.snapshot,
            labels=dict(labels),
            env_vars=dict(spec.env),
            auto_stop_interval=0,  # it does not see a command at work; the TTL is the lease
            ttl_minutes=_minutes(spec.ttl),
        )
        try:
            made = await self._daytona.create(params, timeout=max(1.0, min(seconds, _CALL * 4)))
        except _sdk().DaytonaConflictError as exc:
            raise NameTakenError from exc
        self._handles[made.id] = made
        return str(made.id)

    async def kill(self, sandbox_id: str) -> None:
        """See :meth:`Cloud.kill`."""
        try:
            handle = await self._handle(sandbox_id)
            del self._handles[sandbox_id]
            await handle.delete(timeout=_CALL)
        except _sdk().DaytonaNotFoundError:
            return

    async def extend(self, sandbox_id: str, seconds: float) -> None:
        """See :meth:`Cloud.extend`."""
        handle = await self._handle(sandbox_id)
        await handle.set_ttl(_minutes(seconds), request_timeout=_CALL)

    async def execute(self, sandbox_id: str, command: str, env: Mapping[str, str], seconds: float) -> tuple[int, str]:
        """See :meth:`Cloud.execute`."""
        handle = await self._handle(sandbox_id)
        done = await handle.process.exec(command, cwd="/", env=dict(env), timeout=math.ceil(seconds))
        return int(done.exit_code), done.result

    async def upload(self, sandbox_id: str, path: str, file: IO[bytes]) -> None:
        """See :meth:`Cloud.upload`."""
        handle = await self._handle(sandbox_id)
        await handle.fs.upload_file_stream(file, path, timeout=_TRANSFER)

    async def download(self, sandbox_id: str, path: str) -> AsyncIterator[bytes]:
        """See :meth:`Cloud.download`."""
        handle = await self._handle(sandbox_id)
        async for chunk in await handle.fs.download_file_stream(path, timeout=_TRANSFER):
            yield chunk

    def facts(self, exc: BaseException, *, operation: str, stage: str) -> Failure:
        """See :meth:`Cloud.facts`."""
        return daytona_facts(exc, operation=operation, stage=stage)

    @property
    def _daytona(self) -> Any:
        if self._owner != os.getpid():  # a session that crossed a fork would serve two masters
            settings, self._owner, self._handles = self._settings, os.getpid(), {}
            config = _sdk().DaytonaConfig(api_key=settings.api_key(), api_url=settings.api_url, target=settings.target)
            self._client = _sdk().AsyncDaytona(config)
        return self._client

    async def _handle(self, sandbox_id: str) -> Any:
        client = self._daytona
        if sandbox_id not in self._handles:
            self._handles[sandbox_id] = await client.get(sandbox_id, request_timeout=_CALL)
        return self._handles[sandbox_id]


def _minutes(seconds: float) -> int:
    """Whole minutes, never fewer than asked for."""
    return max(1, math.ceil(seconds / MINUTE))


def _about(sandbox: Any) -> About | None:
    state = str(getattr(sandbox.state, "value", sandbox.state))
    if state in _GONE:
        return None
    return About(
        id=sandbox.id,
        labels=dict(sandbox.labels),
        created=_epoch(sandbox.created_at),
        lease_until=_epoch(sandbox.auto_destroy_at),
        state=_STATES.get(state, State.DEAD),
    )


def _epoch(text: str | None) -> float:
    """Seconds since the epoch of an ISO 8601 time; 0 when there is none."""
    return datetime.fromisoformat(text).timestamp() if text else 0.0
