"""What a hosted provider must be able to do; everything else of a driver is shared."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, Protocol

from worker.failures.model import Failure
from worker.sandboxes.base import Spec


class State(StrEnum):
    """What a sandbox is good for."""

    RUNNING = "running"
    STARTING = "starting"
    DEAD = "dead"
    """It is still listed and cannot be used any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """A sandbox as its provider describes it. Times are seconds since the epoch."""

    id: str
    labels: Mapping[str, str]
    created: float
    lease_until: float
    state: State


class NameTakenError(Exception):
    """A sandbox was made under this key before, or is being made."""


class Cloud(Protocol):
    """One account of a provider. Every call is cancellable and raises what the SDK raises, as it raises it."""

    name: str

    def is_id(self, text: str) -> bool:
        """Whether ``text`` has the form of a sandbox id; anything else is never sent."""

    async def list(self, labels: Mapping[str, str]) -> list[About]:
        """Sandboxes that the provider says have these labels, dead ones too."""

    async def about(self, sandbox_id: str) -> About | None:
        """A sandbox, or ``None`` when there is none of this id."""

    async def create(self, spec: Spec, labels: Mapping[str, str], *, key: str, seconds: float) -> str:
        """Make a sandbox and return its id.

        ``key`` identifies the create to the provider: the same key never makes two, as far as the provider keeps
        its word. Raises :class:`NameTakenError` when it says that the key was used.
        """

    async def kill(self, sandbox_id: str) -> None:
        """End a sandbox; one that is gone is no error."""

    async def extend(self, sandbox_id: str, seconds: float) -> None:
        """Let the lease end ``seconds`` from now, sooner or later than before."""

    async def execute(self, sandbox_id: str, command: str, env: Mapping[str, str], seconds: float) -> tuple[int, str]:
        """Run a shell command; its exit code and what it printed to stdout (to stderr too, maybe)."""

    async def upload(self, sandbox_id: str, path: str, file: IO[bytes]) -> None:
        """Write a file, not atomically."""

    def download(self, sandbox_id: str, path: str) -> AsyncIterator[bytes]:
        """Stream a file. A cut stream raises."""

    def facts(self, exc: BaseException, *, operation: str, stage: str) -> Failure:
        """Read an exception of the SDK."""
