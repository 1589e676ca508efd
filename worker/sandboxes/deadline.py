"""A point in time past which work must stop, and the wish to stop sooner."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from worker.failures.model import Cancelled, EndedBy, Failure, OperationFailed


@dataclass(frozen=True, slots=True)
class Deadline:
    """An absolute monotonic time (seconds) shared by all steps of one attempt, and a cancel signal."""

    at: float
    cancel: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def after(cls, seconds: float, cancel: threading.Event | None = None) -> "Deadline":
        """A deadline ``seconds`` from now."""
        return cls(time.monotonic() + seconds, cancel or threading.Event())

    def capped(self, seconds: float) -> "Deadline":
        """The sooner of this deadline and ``seconds`` from now; the cancel signal is shared."""
        return replace(self, at=min(self.at, time.monotonic() + seconds))

    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - time.monotonic())

    def ended_by(self) -> EndedBy | None:
        """Why work must stop now, or ``None`` while it may go on."""
        if self.cancel.is_set():
            return EndedBy.CANCELLED
        if time.monotonic() >= self.at:
            return EndedBy.DEADLINE
        return None

    def check(self, operation: str, stage: str) -> None:
        """Raise :class:`Cancelled` or a ``deadline`` failure at a step boundary."""
        match self.ended_by():
            case EndedBy.CANCELLED:
                raise Cancelled
            case EndedBy.DEADLINE:
                raise OperationFailed(
                    Failure(operation=operation, stage=stage, ended_by=EndedBy.DEADLINE, reason="deadline")
                )

    def wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Sleep ``seconds`` at most, less if cancelled, out of time, or ``until()`` holds; say if it held."""
        end = min(self.at, time.monotonic() + seconds)
        while not until():
            left = end - time.monotonic()
            if left <= 0 or self.cancel.wait(min(left, 0.05)):
                return until()
        return True
