"""The ledger of tool calls: how far each has come, written before each step.

One hash per call, named by run and dispatch id. The ledger has a birth time: a store that was emptied is born
anew, and cannot vouch for a call that was issued before. The stages: ``open``, ``bootstrap``, ``stage`` (nothing
was sent), ``dispatch`` (sent, perhaps, to the recorded sandbox), ``done`` (the result is here).
"""

import json
import secrets
from dataclasses import dataclass, replace
from typing import Any, Literal

from worker.stores.redis import Client, script, text

Vouched = Literal["present", "absent_new", "absent_unvouched"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What identifies a call. ``issued_at`` is epoch seconds of whoever made the id, or ``None``.

    ``fingerprint`` is a digest over the package and the arguments: the same id with others is another call.
    """

    run_id: str
    dispatch_id: str
    fingerprint: str
    issued_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the ledger says. ``generation`` counts proven starts from nothing: a claim belongs to one of them.

    ``provider`` and ``sandbox_id`` are where it was sent, empty before. ``vouched`` is what the ledger is worth.
    """

    vouched: Vouched
    stage: str
    nonce: str
    generation: int
    provider: str
    sandbox_id: str
    result: dict[str, Any] | None

    @property
    def sent(self) -> bool:
        """It may have been sent."""
        return self.stage in {"dispatch", "done"}


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """A start of a call that was sent to a sandbox."""

    nonce: str
    generation: int
    provider: str
    sandbox_id: str


class Conflict(Exception):  # noqa: N818 - it says what was found
    """The dispatch id stands for another call."""


class Ledger:
    """The calls of one installation. ``ttl`` is seconds that an entry outlives its last change."""

    def __init__(self, client: Client, *, prefix: str, ttl: float) -> None:
        self._client = client
        self._entries = f"{prefix}:dispatch:"
        self._born = f"{prefix}:ledger-born"
        self._ttl = round(ttl * 1000)
        self._scripts = {name: script(client, f"ledger_{name}") for name in ("open", "send", "again", "note")}

    def born(self) -> float:
        """When the ledger was born, in epoch seconds of the server; the first to ask gives birth to it."""
        seconds, micros = self._client.time()
        self._client.set(self._born, seconds * 1000 + micros // 1000, nx=True)
        return float(self._client.get(self._born)) / 1000

    def open(self, call: Call) -> Entry:
        """Read the entry of a call, or make it. Raises :class:`Conflict`."""
        issued = "" if call.issued_at is None else str(round(call.issued_at * 1000))
        reply = self._scripts["open"](
            keys=[self._key(call), self._born], args=[call.fingerprint, secrets.token_hex(16), issued, self._ttl]
        )
        if reply[0] == "conflict":
            raise Conflict
        vouched, stage, nonce, generation, provider, sandbox_id, result = map(text, reply)
        return Entry(
            vouched=vouched,  # type: ignore[arg-type]  # the script answers with these words only
            stage=stage,
            nonce=nonce,
            generation=int(generation),
            provider=provider,
            sandbox_id=sandbox_id,
            result=json.loads(result) if result else None,
        )

    def whereabouts(self, run_id: str, dispatch_id: str) -> "Whereabouts | None":
        """Where a call is that was sent and of which no result is known; ``None`` if there is no such call."""
        key = f"{self._entries}{run_id}/{dispatch_id}"
        stage, *rest = map(text, self._client.hmget(key, "stage", "nonce", "generation", "provider", "sandbox"))
        return Whereabouts(rest[0], int(rest[1]), *rest[2:]) if stage == "dispatch" else None

    def note(self, call: Call, stage: Literal["bootstrap", "stage"]) -> None:
        """Write down a step that sends nothing; one that comes late changes nothing."""
        self._scripts["note"](keys=[self._key(call)], args=[stage, self._ttl])

    def send(self, call: Call, entry: Entry, *, provider: str, sandbox_id: str) -> bool:
        """Write down, before it is sent, where a call goes. False: it went elsewhere, or was sent again, meanwhile."""
        args = [entry.nonce, entry.generation, provider, sandbox_id, call.fingerprint, self._ttl]
        return bool(self._scripts["send"](keys=[self._key(call)], args=args))

    def again(self, call: Call, entry: Entry) -> Entry | None:
        """Begin the next generation. ``None``: somebody else has done so, read the entry anew.

        Only for a call that was proven never to have started, or that only reads.
        """
        args = [entry.generation, self._ttl]
        generation = self._scripts["again"](keys=[self._key(call)], args=args)
        return replace(entry, generation=int(generation), stage="stage") if generation else None

    def finish(self, call: Call, entry: Entry, result: dict[str, Any]) -> None:
        """Keep the result: a call that comes again under this id gets it without asking any sandbox."""
        fields: dict[str, Any] = {"fingerprint": call.fingerprint, "stage": "done", "result": json.dumps(result)}
        fields |= {"nonce": entry.nonce, "generation": entry.generation, "vouched": 1}
        with self._client.pipeline() as pipe:
            pipe.hset(self._key(call), mapping=fields)
            pipe.pexpire(self._key(call), self._ttl)
            pipe.execute()

    def _key(self, call: Call) -> str:
        return f"{self._entries}{call.run_id}/{call.dispatch_id}"
