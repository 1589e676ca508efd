"""The attempt record: one hash per task id decides which message may run and what a duplicate is told.

Every change is one Lua script on the server's own clock, so two workers never disagree about the time.
The states: ``running`` (a body holds the lease), ``waiting`` (a retry is due), and the terminal
``succeeded``, ``failed``, ``cancelled``.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from worker.stores.redis import Client, script, text

Terminal = Literal["succeeded", "failed", "cancelled"]
TERMINAL: frozenset[str] = frozenset({"succeeded", "failed", "cancelled"})

GRACE = 30.0
"""Seconds past its due time after which a message counts as lost and is published again."""
DYING = 5.0
"""Seconds after which what a body left is cleaned up when it was closed from outside: its process was killed."""
LONGEST_WAIT = 3600.0
"""Seconds; the put-off of a task that is published again and again ends here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """This message may run its body. Durations in seconds, times in epoch seconds of the server's clock."""

    fence: int
    deaths: int
    spent: float
    first_seen: float
    now: float
    cancelled: bool
    carry: str
    waited: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """This message must not run. ``payload`` is the stored outcome, absent while a body is alive."""

    why: Literal["done", "stale", "busy"]
    state: str
    payload: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record as an operator or the sweep reads it. Times in epoch seconds."""

    task_id: str
    state: str
    attempt: int
    fence: int
    deaths: int
    run_id: str
    next_eta: float
    lease_until: float
    republished: int
    history: tuple[str, ...]
    """Lines of ``<attempt> <cause>``, oldest first."""
    payload: Any
    carry: str
    envelope: dict[str, Any] | None
    unsettled: bool
    """Nobody has cleaned up after it, or not for the last time: it was closed from outside its body, for one."""


_SCRIPTS = ("begin", "leave", "end", "renew", "disown", "close", "lapsed", "unsettled", "settle_again")


class AttemptStore:
    """The attempt records of one installation."""

    def __init__(self, client: Client, *, prefix: str, lease: float, record_ttl: float) -> None:
        self._client = client
        self._records = f"{prefix}:attempt:"
        self._index = f"{prefix}:leases"
        self._cancels = f"{prefix}:cancel:"
        self._unsettled = f"{prefix}:unsettled"
        self._lease = _ms(lease)
        self._ttl = _ms(record_ttl)
        self._scripts = {name: script(client, name) for name in _SCRIPTS}

    def begin(
        self, task_id: str, *, attempt: int, owner: str, envelope: str, run_id: str, delivery: str, carry: str = ""
    ) -> Begun | Turned:
        """Ask to run attempt ``attempt`` (1-based) of ``task_id``; the first of two round trips a body makes.

        ``delivery`` is unique to one delivery of the message: it may ask again when the answer was lost.
        """
        reply = self._scripts["begin"](
            keys=[self._record(task_id), self._index, self._cancels + run_id],
            args=[task_id, attempt, owner, self._lease, self._ttl, envelope, run_id, delivery, carry],
        )
        if reply[0] != "run":
            return Turned(why=reply[0], state=text(reply[1]), payload=_load(reply[2]))
        fence, deaths, spent, first_seen, now, cancelled, carry, waited = reply[1:]
        return Begun(
            fence=int(fence),
            deaths=int(deaths),
            spent=float(spent) / 1000,
            first_seen=float(first_seen) / 1000,
            now=float(now) / 1000,
            cancelled=cancelled == "1",
            carry=text(carry),
            waited=float(waited) / 1000,
        )

    def leave(self, task_id: str, *, fence: int, carry: str) -> None:
        """Leave something for the next body already now: this one may die."""
        self._scripts["leave"](keys=[self._record(task_id)], args=[fence, carry])

    def end_waiting(
        self, task_id: str, *, attempt: int, fence: int, payload: Any, cause: str, countdown: float, spent: float,
        carry: str, counts: bool = True,
    ) -> bool:  # fmt: skip
        """Note that the next attempt is due in ``countdown`` seconds. False: another owner holds the task.

        ``counts=False`` puts off this attempt instead.

        May be asked again when the answer was lost; so may :meth:`end_terminal`.
        """
        times = (_ms(countdown), _ms(spent), _ms(GRACE), self._ttl)
        return self._end(task_id, fence, "waiting", json.dumps(payload), cause, *times, carry, attempt, int(counts))

    def end_terminal(
        self, task_id: str, *, attempt: int, fence: int, state: Terminal, payload: Any, cause: str, spent: float
    ) -> bool:
        """Write the final outcome. False: another owner holds the task."""
        times = (0, _ms(spent), _ms(GRACE), self._ttl)
        return self._end(task_id, fence, state, json.dumps(payload), cause, *times, "", attempt, 1)

    def renew(self, task_id: str, *, fence: int, run_id: str) -> tuple[bool, bool]:
        """Give a sign of life; replies (still ours, run is cancelled)."""
        ours, cancelled = self._scripts["renew"](
            keys=[self._record(task_id), self._index, self._cancels + run_id], args=[task_id, fence, self._lease]
        )
        return bool(ours), bool(cancelled)

    def disown(self, task_id: str, *, owner: str, handed_on: bool = False) -> bool:
        """Free the lease of a body whose process is dead or is being ended.

        ``handed_on``: its worker was told to end, so that this is no death.
        """
        args = [task_id, owner, int(handed_on)]
        return bool(self._scripts["disown"](keys=[self._record(task_id), self._index], args=args))

    def close(self, task_id: str, *, state: Terminal, payload: Any, cause: str) -> bool:
        """Close a record, if there is one, from outside its body; an outcome that is there already stays (False).

        What its body leaves behind is cleaned up by the sweep: see :meth:`next_unsettled`.
        """
        return bool(
            self._scripts["close"](
                keys=[self._record(task_id), self._index, self._unsettled],
                args=[task_id, state, json.dumps(payload), cause, _ms(GRACE), _ms(DYING)],
            )
        )

    def next_unsettled(self) -> Record | None:
        """Take a task that is over, to clean up after it; one not :meth:`settled` comes again later."""
        task_id = self._scripts["unsettled"](
            keys=[self._unsettled], args=[self._records, _ms(2 * GRACE), _ms(LONGEST_WAIT)]
        )
        return self.read(task_id) if task_id else None

    def settle_again(self, task_id: str, *, seconds: float) -> None:
        """Have the sweep clean up after a task that is over once more, in ``seconds``: more may come to light."""
        self._scripts["settle_again"](keys=[self._record(task_id), self._unsettled], args=[task_id, _ms(seconds)])

    def settled(self, task_id: str) -> None:
        """Nothing of the task is left behind."""
        with self._client.pipeline() as pipe:
            pipe.hdel(self._record(task_id), "unsettled")
            pipe.zrem(self._unsettled, task_id)
            pipe.execute()

    def cancel(self, run_id: str) -> None:
        """Mark a run as cancelled: bodies stop at their next step, later ones never start."""
        self._client.set(self._cancels + run_id, "1", px=self._ttl)

    def lapsed(self, limit: int) -> list[Record]:
        """Take tasks whose lease, due time or confirmation has lapsed; each is put off at the same time."""
        ids = self._scripts["lapsed"](keys=[self._index], args=[self._records, _ms(GRACE), _ms(LONGEST_WAIT), limit])
        return [record for record in map(self.read, ids) if record is not None]

    def confirm(self, task_id: str) -> None:
        """The outcome reached the result backend: forget the message, which holds sealed secrets."""
        with self._client.pipeline(transaction=False) as pipe:
            pipe.hdel(self._record(task_id), "envelope", "carry")
            pipe.zrem(self._index, task_id)
            pipe.execute()

    def read(self, task_id: str) -> Record | None:
        """The record of a task, if there is one."""
        fields: dict[str, str] = self._client.hgetall(self._record(task_id))
        if not fields:
            return None
        envelope = fields.get("envelope")
        return Record(
            task_id=task_id,
            state=fields.get("state", ""),
            attempt=int(fields.get("attempt", 0)),
            fence=int(fields.get("fence", 0)),
            deaths=int(fields.get("deaths", 0)),
            run_id=fields.get("run_id", ""),
            next_eta=float(fields.get("next_eta", 0)) / 1000,
            lease_until=float(fields.get("lease_until", 0)) / 1000,
            republished=int(fields.get("republished", 0)),
            history=tuple(fields.get("history", "").splitlines()),
            payload=_load(fields.get("payload")),
            carry=fields.get("carry", ""),
            envelope=json.loads(envelope) if envelope else None,
            unsettled="unsettled" in fields,
        )

    def all(self) -> Iterator[Record]:
        """Every record, in no order."""
        for key in self._client.scan_iter(match=f"{self._records}*", count=500):
            record = self.read(str(key).removeprefix(self._records))
            if record is not None:
                yield record

    def _end(self, task_id: str, *outcome: Any) -> bool:
        """Run the end script; ``outcome`` in the order of its arguments."""
        return bool(self._scripts["end"](keys=[self._record(task_id), self._index], args=[task_id, *outcome]))

    def _record(self, task_id: str) -> str:
        return self._records + task_id


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _load(payload: Any) -> Any:
    return json.loads(payload) if payload else None
