"""The operation record: what became of one copy-back, for operators and for whoever recovers it.

``running -> succeeded | partial | failed | retry_exhausted | cancelled``. An end is final: success is sticky, and
only what the sweep closed may be taken up again, by the same task. Every write of a body carries the fence of its
begin, so a body that was given up cannot write. The attempt record decides who runs; this one remembers.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from worker.failures.cause import Cause
from worker.stores.redis import Client, script

Ended = Literal["succeeded", "partial", "failed", "retry_exhausted", "cancelled"]
GOOD: frozenset[str] = frozenset({"succeeded", "partial"})
RECOVER = "recover"
"""The next action of an operation whose sandbox was kept: ``sandferry recover RUN``."""
WORKER_LOST = Cause.of("worker_lost", operation="copy_back", reason="worker_lost")
"""What the sweep writes; an attempt number of 0 marks its line."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The operation is this body's to work on."""

    fence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """There is nothing to work on.

    ``done``: it ended, with ``result``. ``foreign``: the id is another task's or run's. ``refused``: what was
    to be recovered has not failed (``status`` is its own, empty if there is none).
    """

    why: Literal["done", "foreign", "refused"]
    status: str
    result: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One record. Times in epoch seconds of the server's clock."""

    operation_id: str
    run_id: str
    task_id: str
    provider: str
    sandbox_id: str
    status: str
    attempts: tuple[tuple[int, str], ...]
    """(attempt, cause line), oldest first; attempt 0 is the sweep's."""
    cause: str | None
    next_action: str | None
    created: float
    updated: float
    recovers: str | None
    recovered_by: str | None
    request: dict[str, Any]
    result: Any
    details: Any
    """For operators alone: paths, which no client and no event sees."""

    @property
    def stderr(self) -> str:
        """The causes of its attempts, a line each."""
        return "".join(f"{cause}\n" for _, cause in self.attempts)

    @property
    def metadata(self) -> dict[str, Any]:
        """``workspace_sync.cause`` is the last cause."""
        return {"workspace_sync": {"cause": self.cause}}

    @property
    def command(self) -> str | None:
        """What an operator may do next."""
        return f"sandferry recover {self.run_id}" if self.next_action == RECOVER else None


class OperationStore:
    """The operations of one installation."""

    def __init__(self, client: Client, *, prefix: str, lease: float, record_ttl: float) -> None:
        """``lease`` and ``record_ttl`` are seconds: how long a body may be silent, how long an end is kept."""
        self._client = client
        self._records = f"{prefix}:operation:"
        self._all = f"{prefix}:operations"
        self._running = f"{prefix}:operations:running"
        self._runs = f"{prefix}:operations:run:"
        self._lease = _ms(lease)
        self._ttl = _ms(record_ttl)
        self._scripts = {name: script(client, f"operation_{name}") for name in ("begin", "note", "finish", "lapsed")}

    def begin(
        self,
        operation_id: str,
        *,
        run_id: str,
        task_id: str,
        provider: str,
        sandbox_id: str,
        request: Mapping[str, Any],
        recovers: str = "",
    ) -> Opened | Closed:
        """Work on an operation: the first attempt makes the record, a later one takes it over.

        ``request`` is kept for whoever recovers it; ``recovers`` is the id of a failed operation whose work this
        one fetches.
        """
        reply = self._scripts["begin"](
            keys=[self._records + operation_id, self._all, self._runs + run_id, self._running],
            args=[
                operation_id,
                run_id,
                task_id,
                provider,
                sandbox_id,
                self._lease,
                self._records,
                recovers,
                json.dumps(request),
            ],
        )
        if reply[0] == "run":
            return Opened(int(reply[1]))
        result = json.loads(reply[2]) if len(reply) > 2 and reply[2] else None
        return Closed(why=reply[0], status=reply[1], result=result)

    def renew(self, operation_id: str, fence: int) -> bool:
        """Give a sign of life. False: somebody else owns the operation, or it has ended."""
        return self._note(operation_id, fence, self._lease, 0, "")

    def attempt_failed(self, operation_id: str, fence: int, *, attempt: int, cause: Cause, wait: float) -> bool:
        """Note the cause of an attempt; the next begins in ``wait`` seconds. False as :meth:`renew`."""
        return self._note(operation_id, fence, self._lease + _ms(wait), attempt, str(cause))

    def finish(
        self,
        operation_id: str,
        fence: int | None,
        status: Ended,
        *,
        attempt: int = 0,
        cause: Cause | None = None,
        result: Any = None,
        details: Any = None,
        next_action: str = "",
    ) -> bool:
        """Write the end. False: it has one already, or is somebody else's; nothing was written.

        ``result`` is what clients are told, ``details`` (paths that conflict) is for operators alone.
        Without a ``fence`` the end comes from outside the body (a hard time limit, a revoked task).
        """
        return bool(
            self._scripts["finish"](
                keys=[self._records + operation_id, self._running, self._all],
                args=[
                    operation_id, "" if fence is None else fence, status, attempt, str(cause or ""),
                    json.dumps(result), next_action, self._ttl, self._records, self._runs, json.dumps(details),
                ],
            )
        )  # fmt: skip

    def close_lapsed(self, limit: int = 100) -> list[Operation]:
        """The sweep: close, as failed, operations whose body has been silent for longer than its lease."""
        ids = self._scripts["lapsed"](
            keys=[self._running], args=[self._records, str(WORKER_LOST), RECOVER, self._ttl, limit, self._runs]
        )
        return [found for found in map(self.read, ids) if found is not None]

    def read(self, operation_id: str) -> Operation | None:
        """One record, if it is there."""
        fields: dict[str, str] = self._client.hgetall(self._records + operation_id)
        return _operation(operation_id, fields) if fields.get("status") else None

    def of_run(self, run_id: str, limit: int = 100) -> list[Operation]:
        """The operations of a run, newest first."""
        return list(self._newest(self._runs + run_id, limit))

    def newest(self, limit: int = 100) -> list[Operation]:
        """The newest operations of all runs, newest first."""
        return list(self._newest(self._all, limit))

    def _newest(self, index: str, limit: int) -> Iterator[Operation]:
        """Records by an index, which forgets those whose time is over."""
        for member in self._client.zrevrange(index, 0, limit - 1):
            found = self.read(str(member))
            if found is None:
                self._client.zrem(index, member)
            else:
                yield found

    def _note(self, operation_id: str, fence: int, lease: int, attempt: int, cause: str) -> bool:
        keys = [self._records + operation_id, self._running]
        return bool(self._scripts["note"](keys=keys, args=[operation_id, fence, lease, attempt, cause]))


def _operation(operation_id: str, fields: dict[str, str]) -> Operation:
    lines = [line.partition(" ") for line in fields.get("stderr", "").splitlines()]
    return Operation(
        operation_id=operation_id,
        run_id=fields["run_id"],
        task_id=fields["task_id"],
        provider=fields["provider"],
        sandbox_id=fields["sandbox_id"],
        status=fields["status"],
        attempts=tuple((int(number), cause) for number, _, cause in lines),
        cause=fields.get("metadata.workspace_sync.cause"),
        next_action=fields.get("next_action") or None,
        created=float(fields["created"]) / 1000,
        updated=float(fields["updated"]) / 1000,
        recovers=fields.get("recovers") or None,
        recovered_by=fields.get("recovered_by"),
        request=json.loads(fields.get("request", "{}")),
        result=json.loads(fields["result"]) if fields.get("result") else None,
        details=json.loads(fields["details"]) if fields.get("details") else None,
    )


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
