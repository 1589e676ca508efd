"""What every provider offers. Jobs use only this; drivers know nothing of Celery or of the jobs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from worker.failures.model import EndedBy, Failure
from worker.sandboxes.deadline import Deadline

LABEL_RUN = "sandferry.run"
"""Label that binds a sandbox to a run; ``connect`` refuses a sandbox without it."""
LABEL_REQUEST = "sandferry.request"
"""Label that binds a sandbox to the one create that made it (the task id)."""

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A finished command. ``exit_code`` is ``None`` when a signal ended it or its end is unknown.

    A signal nobody of us sent is ``ended_by=unknown``; ``reason`` says what the provider knows of it
    (``out_of_memory``). Codes of the driver, as a shell's: 125 it could not begin, 126 the directory or the
    program cannot be used, 127 there is no such program.
    """

    exit_code: int | None
    signal: str | None
    ended_by: EndedBy
    reason: str | None = None
    stdout: bytes = field(default=b"", repr=False)
    stderr: bytes = field(default=b"", repr=False)

    @property
    def ok(self) -> bool:
        """The command ended by itself with exit code 0."""
        return self.ended_by is EndedBy.ITSELF and self.exit_code == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A sandbox to be made. ``None`` leaves a value to the provider's setting. Sizes are mebibytes."""

    image: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    memory_mb: int | None = None
    cpus: float | None = None
    pids: int | None = None
    strict: bool = False
    ttl: float = 3600.0
    """Seconds of life that the sandbox starts with, where the provider ends one by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Absolute POSIX paths inside a sandbox."""

    workspace: str
    repos: str
    scratch: str
    """Sandferry's own private directory (0700), on the sandbox's persistent disk."""


class Sandbox(Protocol):
    """A sandbox that is ours. Every call is bounded by its deadline; past it nothing of ours runs on.

    What is inside may be hostile: only ``run``, ``write``, ``read`` and ``end_commands`` may rely on it.
    """

    @property
    def id(self) -> str:
        """The provider's id."""

    @property
    def provider(self) -> str:
        """The provider's name, ``docker`` for one."""

    @property
    def layout(self) -> Layout:
        """Where things lie inside."""

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels it was created with."""

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
        """Run a command without a shell, in a built environment (``LC_ALL=C`` and ``env``, nothing else).

        ``output_limit`` bounds each stream in bytes; a stream that passes it ends the command
        (``ended_by=output_limit``). When the deadline passes or the run is cancelled the process group is
        ended (TERM, grace, KILL) and its end confirmed; unconfirmed raises a ``timeout_ambiguous`` failure.
        A non-zero exit is not an error. The provider's own faults are raised as the SDK raised them:
        :meth:`Provider.facts` reads them.
        """

    def write(self, path: str, data: bytes | Iterable[bytes], *, deadline: Deadline, mode: int = 0o600) -> None:
        """Write a file, streamed; it appears whole or not at all."""

    def read(self, path: str, *, deadline: Deadline, offset: int = 0) -> Iterator[bytes]:
        """Stream a file from ``offset`` bytes on."""

    def mark(self, tag: str) -> None:
        """Commands that are run from here on belong to ``tag`` (a task id); see :meth:`end_commands`."""

    def end_commands(self, tag: str, *, deadline: Deadline) -> None:
        """End every command of ``tag`` that still runs, whichever worker began it, and see it gone.

        :raises OperationFailed: nobody could confirm it (``timeout_ambiguous``), or the sandbox is lost.
        """

    def keep_alive(self, seconds: float, *, deadline: Deadline) -> None:
        """Have the provider leave it at least ``seconds`` to live; never shortens. Runs nothing inside.

        A provider that ends no sandbox by itself only looks whether it lives.

        :raises OperationFailed: it is gone, or there and dead (``sandbox_lost``).
        """

    def release(self, *, deadline: Deadline) -> None:
        """End the sandbox and all in it, dead or alive. Runs nothing inside. Gone already is success."""


class Provider(Protocol):
    """One provider of sandboxes."""

    @property
    def name(self) -> str:
        """The name requests use."""

    def find(self, labels: Mapping[str, str], *, deadline: Deadline) -> Sequence[Sandbox]:
        """Every sandbox of ours that has all these labels exactly, dead ones too; oldest first.

        Runs nothing inside.
        """

    def create(self, spec: Spec, labels: Mapping[str, str], *, deadline: Deadline) -> Sandbox:
        """Make a sandbox, never blindly: an ambiguous create looks for the labels before it makes another."""

    def connect(self, sandbox_id: str, labels: Mapping[str, str], *, deadline: Deadline) -> Sandbox:
        """The sandbox with this id, if it has all these labels.

        :raises InvalidRequest: ``sandbox_id`` is not ours (``foreign_sandbox``).
        :raises OperationFailed: it is gone (``sandbox_lost``).
        """

    def end(self, sandbox_id: str, labels: Mapping[str, str], *, deadline: Deadline) -> bool:
        """End the sandbox with this id, dead or alive, if it has all these labels; ``False``: it was gone.

        Labels are read from outside and nothing runs inside: what is in there cannot keep it.

        :raises InvalidRequest: ``sandbox_id`` is not ours (``foreign_sandbox``).
        """

    def facts(self, exc: BaseException, *, operation: str, stage: str) -> Failure:
        """Read an exception of this provider's SDK."""
