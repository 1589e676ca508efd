"""Which sandboxes we made, and until when each is kept: what the reaper acts on.

A sandbox is reaped when it was released, when the time it was to be kept has passed and no task holds it, or
when it lost a race of creates. Never on its age alone.
"""

import time
from collections import Counter
from dataclasses import dataclass

from worker.stores.redis import Client, script


@dataclass(frozen=True, slots=True)
class Kept:
    """A sandbox in the registry. Times in epoch seconds."""

    provider: str
    sandbox_id: str
    run_id: str
    due: float
    """When the reaper may have it."""


class SandboxRegistry:
    """The sandboxes of one installation."""

    def __init__(self, client: Client, *, prefix: str) -> None:
        self._client = client
        self._entries = f"{prefix}:sandbox:"
        self._due = f"{prefix}:sandboxes"
        self._note_script = script(client, "sandbox")

    def hold(self, provider: str, sandbox_id: str, *, run_id: str, task_id: str, seconds: float) -> None:
        """A task uses this sandbox for up to ``seconds``."""
        self._note(provider, sandbox_id, run_id, f"held:{task_id}", time.time() + seconds)

    def keep(self, provider: str, sandbox_id: str, *, run_id: str, seconds: float) -> None:
        """Keep a sandbox for at least ``seconds`` from now; never shortens what was promised before."""
        self._note(provider, sandbox_id, run_id, "keep", time.time() + seconds)

    def let_go(self, provider: str, sandbox_id: str, *, run_id: str, task_id: str) -> None:
        """The task does not use the sandbox any more."""
        self._note(provider, sandbox_id, run_id, f"held:{task_id}", 0)

    def give_up(self, provider: str, sandbox_id: str, *, run_id: str) -> None:
        """The sandbox is to be ended as soon as possible, whoever gets to it."""
        member = f"{provider}/{sandbox_id}"
        with self._client.pipeline() as pipe:
            pipe.delete(self._entries + member)
            pipe.hset(self._entries + member, mapping={"run_id": run_id})
            pipe.zadd(self._due, {member: 0})
            pipe.execute()

    def forget(self, provider: str, sandbox_id: str) -> None:
        """The sandbox is gone."""
        member = f"{provider}/{sandbox_id}"
        with self._client.pipeline() as pipe:
            pipe.delete(self._entries + member)
            pipe.zrem(self._due, member)
            pipe.execute()

    def due(self, limit: int = 50) -> list[Kept]:
        """Sandboxes whose time has come."""
        found = self._client.zrangebyscore(self._due, "-inf", time.time(), start=0, num=limit, withscores=True)
        return [self._kept(str(member), float(score)) for member, score in found]

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

    def _note(self, provider: str, sandbox_id: str, run_id: str, field: str, until: float) -> None:
        member = f"{provider}/{sandbox_id}"
        self._note_script(keys=[self._entries + member, self._due], args=[member, field, until, run_id])

    def _kept(self, member: str, due: float) -> Kept:
        provider, _, sandbox_id = member.partition("/")
        fields: dict[str, str] = self._client.hgetall(self._entries + member)
        return Kept(provider, sandbox_id, fields.get("run_id", ""), due)
