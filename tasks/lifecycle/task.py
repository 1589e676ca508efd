"""`sandbox.extend` and `sandbox.release`: a sandbox between jobs and after the last one."""

from typing import Any, ClassVar

from tasks.lifecycle.request import ExtendRequest, ReleaseRequest
from worker.app import app
from worker.failures.schedule import Schedule
from worker.retrying.attempt import Attempt
from worker.retrying.holding import acquire, checked_keep, end, let_go
from worker.retrying.requests import After, validated
from worker.retrying.task import ClassifiedTask

LIFECYCLE = Schedule(attempts=3, countdowns=(3.0, 9.0), deadline=120.0)
"""As a clone's: the same providers with the same transient faults."""


class ExtendTask(ClassifiedTask):
    """Result: ``{sandbox{provider, id}, seconds}``."""

    name = "sandbox.extend"
    operation: ClassVar[str] = "extend"
    code: ClassVar[str] = "lifecycle_failed"
    schedule: ClassVar[Schedule] = LIFECYCLE

    def parse(self, payload: Any) -> ExtendRequest:
        """Validate the request."""
        return validated(ExtendRequest, payload)

    def execute(self, request: ExtendRequest, attempt: Attempt) -> dict[str, Any]:
        """Extend the lease; a longer one stays."""
        seconds = checked_keep(request.seconds, self.services, "seconds")
        sandbox = acquire(attempt, self.services, request.sandbox.wanted(), keep=seconds)
        let_go(attempt, self.services, sandbox, After(keep=seconds))
        return {"sandbox": request.sandbox.model_dump(), "seconds": seconds}


class ReleaseTask(ClassifiedTask):
    """Result: ``{sandbox{provider, id}, released}``; ``released`` is false if it was gone already."""

    name = "sandbox.release"
    operation: ClassVar[str] = "release"
    heeds_cancel: ClassVar[bool] = False  # what is left of a cancelled run must still be ended
    code: ClassVar[str] = "lifecycle_failed"
    schedule: ClassVar[Schedule] = LIFECYCLE

    def parse(self, payload: Any) -> ReleaseRequest:
        """Validate the request."""
        return validated(ReleaseRequest, payload)

    def execute(self, request: ReleaseRequest, attempt: Attempt) -> dict[str, Any]:
        """End the sandbox, whatever it is like inside."""
        attempt.at("release")
        attempt.provider = self.services.providers.get(request.sandbox.provider)
        released = end(attempt, self.services, attempt.provider, request.sandbox.id)
        return {"sandbox": request.sandbox.model_dump(), "released": released}


extend_task = app.register_task(ExtendTask())
release_task = app.register_task(ReleaseTask())
