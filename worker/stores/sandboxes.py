"""Which sandboxes we made, and until when each is kept: what the reaper acts on.

A sandbox is reaped when it was released, when the time it was to be kept has passed and no task holds it, or
when it lost a race of creates. Never on its age alone. From the moment it was given up or claimed for reaping it is
doomed: nobody gets hold of it any more, so holding and reaping exclude each other.
"""

import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from worker.stores.redis import Client, script

FIRST_WAIT = 60.0
"""Seconds after which ending a sandbox is tried again; longer than any one try takes. Doubles every time."""
LONGEST_WAIT = 3600.0
"""Seconds between two tries at the most."""


class Noted(StrEnum):
    """What became of a wish to hold or keep a sandbox."""

    NOTED = "noted"
    DOOMED = "doomed"
    """It is being ended."""
    FOREIGN = "foreign"
    """It is another run's."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A sandbox in the registry. Times in epoch seconds of the server's clock."""

    provider: str
    sandbox_id: str
    run_id: str
    due: float
    """When the reaper may have it; of a doomed one, when ending it is tried next."""


class SandboxRegistry:
    """The sandboxes of one installation."""

    def __init__(self, client: Client, *, prefix: str) -> None:
        self._client = client
        self._entries = f"{prefix}:sandbox:"
        self._due = f"{prefix}:sandboxes"
        self._lock = f"{prefix}:reaping"
        self._scripts = {name: script(client, name) for name in ("sandbox", "sandbox_doom", "sandbox_claim", "unlock")}

    def hold(self, provider: str, sandbox_id: str, *, run_id: str, task_id: str, seconds: float) -> Noted:
        """A task uses this sandbox for up to ``seconds``."""
        return self._note(provider, sandbox_id, run_id, f"held:{task_id}", str(seconds))

    def holds(self, provider: str, sandbox_id: str, *, task_id: str) -> bool:
        """Whether a task has taken hold of this sandbox and not let go of it."""
        return bool(self._client.hexists(self._entries + _member(provider, sandbox_id), f"held:{task_id}"))

    def keep(self, provider: str, sandbox_id: str, *, run_id: str, seconds: float) -> Noted:
        """Keep a sandbox for at least ``seconds`` from now; never shortens what was promised before."""
        return self._note(provider, sandbox_id, run_id, "keep", str(seconds))

    def let_go(self, provider: str, sandbox_id: str, *, run_id: str, task_id: str) -> None:
        """The task does not use the sandbox any more."""
        self._note(provider, sandbox_id, run_id, f"held:{task_id}", "")

    def give_up(self, provider: str, sandbox_id: str, *, run_id: str) -> Noted:
        """The sandbox is to be ended as soon as possible, whoever gets to it."""
        member = _member(provider, sandbox_id)
        reply = self._scripts["sandbox_doom"](keys=[self._entries + member, self._due], args=[member, run_id])
        return Noted(reply)

    def claim(self) -> Kept | None:
        """Take a sandbox whose time has come, to end it; one that is not forgotten then is handed out again later."""
        args = [self._entries, FIRST_WAIT, LONGEST_WAIT]
        found = self._scripts["sandbox_claim"](keys=[self._due], args=args)
        return self._kept(str(found[0]), float(found[1])) if found else None

    def forget(self, provider: str, sandbox_id: str) -> None:
        """The sandbox is gone."""
        member = _member(provider, sandbox_id)
        with self._client.pipeline() as pipe:
            pipe.delete(self._entries + member)
            pipe.zrem(self._due, member)
            pipe.execute()

    @contextmanager
    def reaping(self, seconds: float) -> Iterator[bool]:
        """Be the only reaper for up to ``seconds``; ``False``: somebody else is."""
        token = secrets.token_hex(8)
        ours = bool(self._client.set(self._lock, token, nx=True, px=max(1, round(seconds * 1000))))
        try:
            yield ours
        finally:
            if ours:
                self._scripts["unlock"](keys=[self._lock], args=[token])

    def all(self) -> list[Kept]:
        """Every sandbox of ours, soonest due first."""
        found = self._client.zrange(self._due, 0, -1, withscores=True)
        return [self._kept(str(member), float(score)) for member, score in found]

    def count(self) -> dict[str, int]:
        """How many sandboxes each provider has for us."""
        members = self._client.zrange(self._due, 0, -1)
        return dict(Counter(str(member).partition("/")[0] for member in members))

    def of_run(self, run_id: str) -> list[Kept]:
        """The sandboxes of one run."""
        return [kept for kept in self.all() if kept.run_id == run_id]

    def _note(self, provider: str, sandbox_id: str, run_id: str, field: str, seconds: str) -> Noted:
        member = _member(provider, sandbox_id)
        reply = self._scripts["sandbox"](
            keys=[self._entries + member, self._due], args=[member, field, seconds, run_id]
        )
        return Noted(reply)

    def _kept(self, member: str, due: float) -> Kept:
        provider, _, sandbox_id = member.partition("/")
        fields: dict[str, str] = self._client.hgetall(self._entries + member)
        return Kept(provider, sandbox_id, fields.get("run_id", ""), due)


def _member(provider: str, sandbox_id: str) -> str:
    return f"{provider}/{sandbox_id}"
