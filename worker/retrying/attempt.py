"""One attempt of one task: what its body knows, and where it reports to."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from worker.observability import metrics
from worker.observability.logs import logger
from worker.observability.sentry import breadcrumb
from worker.retrying.ticker import Ticker
from worker.sandboxes.base import Provider, Sandbox
from worker.sandboxes.deadline import Deadline
from worker.stores.attempts import AttemptStore
from worker.stores.events import EventStore, Value, allowed
from worker.stores.redis import StoreError

log = logger(__name__)

_signs_of_life = Ticker("lease")
_sandbox_leases = Ticker("sandbox")

SIGN_OF_LIFE = 2.0
"""Seconds between renewals of a body's lease, and so the longest a cancel goes unheard."""
KEEP_ALIVE_TIMEOUT = 20.0
"""Seconds a provider has to answer a renewal."""


class Postponed(Exception):  # noqa: N818 - the name says what happened
    """The attempt could not begin its work and is to be made later; it does not count. ``reason`` is a member."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(slots=True, kw_only=True)
class Attempt:
    """What a body may use. Made anew for every body; nothing of it outlives one."""

    task_id: str
    run_id: str
    operation: str
    number: int
    attempts: int
    fence: int
    spent: float
    """Seconds that earlier attempts used: time in bodies and planned countdowns."""
    first_seen: float
    """Epoch seconds at which a worker first had this task in hand, by the clock of the store."""
    known_before: float = 0.0
    """Seconds between that and the beginning of this body, by the clock of the store."""
    carry: str
    """What the last attempt left for this one (a sealed secret); set it to leave something for the next."""
    deadline: Deadline
    stage: str = "validate"
    provider: Provider | None = None
    operation_fence: int | None = None
    """Ownership of the job's own operation record, if it has one."""
    secrets: list[str] = field(default_factory=list, repr=False)
    """Every secret this body handled, for the redactor."""
    started: float = field(default_factory=time.monotonic)
    stage_began: float = field(default_factory=time.monotonic)
    lost: bool = False
    """Another owner holds the task: whatever this body does is not recorded any more."""
    creating: bool = False
    """A create of a sandbox was sent and nobody knows yet what became of it."""
    ended: bool = False
    """The outcome is on its way to the record: nothing can stop the body any more."""
    events: EventStore = field(repr=False)
    resources: ExitStack = field(default_factory=ExitStack, repr=False)

    def limit(self, seconds: float) -> None:
        """Set the deadline of all attempts together; what was spent before counts."""
        self.deadline = Deadline.after(max(0.0, seconds - self.spent), self.deadline.cancel)

    def at(self, stage: str) -> None:
        """Enter a step; raises if the run was cancelled or the time is over."""
        self._leave_stage()
        self.stage = stage
        self.deadline.check(self.operation, stage)

    def end(self) -> None:
        """The body is over; what follows only records its outcome."""
        self._leave_stage()
        self.ended = True

    def _leave_stage(self) -> None:
        now = time.monotonic()
        metrics.step(self.operation, self.stage, now - self.stage_began)
        self.stage_began = now

    @property
    def provider_name(self) -> str:
        """The provider that the attempt works on, ``none`` before it has one."""
        return "none" if self.provider is None else self.provider.name

    def elapsed(self) -> float:
        """Seconds since this body began."""
        return time.monotonic() - self.started

    def known(self) -> float:
        """Seconds since a worker first had this task in hand; no matter what this machine's clock says."""
        return self.known_before + self.elapsed()

    def emit(self, name: str, **data: Value) -> None:
        """Write an event to the run's timeline, a Sentry breadcrumb and the log. Never fails a job."""
        seen = allowed(data)
        log.info(name, **seen)
        breadcrumb(name, seen)
        try:
            self.events.append(self.run_id, name, {"task_id": self.task_id, "attempt": self.number, **seen})
        except StoreError as exc:
            log.warning("event not stored", event_name=name, exception=type(exc).__name__)

    def every(self, seconds: float, call: Callable[[], object]) -> None:
        """Call ``call`` every so many seconds while the body runs."""
        self.resources.enter_context(_sandbox_leases.every(seconds, call))

    def sign(self, call: Callable[[], object]) -> None:
        """Call this along with every sign of life while the body runs."""
        self.resources.enter_context(_signs_of_life.every(SIGN_OF_LIFE, lambda: call() and None))

    def hold(self, sandbox: Sandbox, lease: float) -> None:
        """Keep a sandbox alive while the body runs: renewed at a third of its lease (seconds)."""
        renew = partial(_renew_sandbox, sandbox, lease)
        self.resources.enter_context(_sandbox_leases.every(lease / 3, renew))


def _renew_sandbox(sandbox: Sandbox, lease: float) -> None:
    sandbox.keep_alive(lease, deadline=Deadline.after(KEEP_ALIVE_TIMEOUT))


def keep_lease(attempt: Attempt, store: AttemptStore, *, heed_cancel: bool) -> None:
    """Give signs of life for ``attempt`` until its resources close; hears of cancels and of a lost lease."""

    def renew() -> None:
        ours, cancelled = store.renew(attempt.task_id, fence=attempt.fence, run_id=attempt.run_id)
        if attempt.ended:
            return
        attempt.lost = not ours
        if attempt.lost or (cancelled and heed_cancel):
            attempt.deadline.cancel.set()

    attempt.resources.enter_context(_signs_of_life.every(SIGN_OF_LIFE, renew))
