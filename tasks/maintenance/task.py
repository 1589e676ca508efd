"""`maintenance.sweep`: what must happen although nobody asks for it."""

from typing import Any, ClassVar

from tasks.maintenance.reap import reap
from tasks.maintenance.republish import republish
from tasks.maintenance.request import SweepRequest, parse
from tasks.maintenance.settle import settle_closed
from worker.app import app
from worker.failures.schedule import Schedule
from worker.observability import metrics
from worker.retrying.attempt import Attempt
from worker.retrying.task import ClassifiedTask


class Sweep(ClassifiedTask):
    """Sent by beat; several at once do no harm."""

    name = "maintenance.sweep"
    operation: ClassVar[str] = "sweep"
    code: ClassVar[str] = "internal_error"
    schedule: ClassVar[Schedule] = Schedule(attempts=1, countdowns=(), deadline=120)
    heeds_cancel: ClassVar[bool] = False
    ignore_result = True

    def parse(self, payload: Any) -> SweepRequest:
        """Validate the request."""
        return parse(payload)

    def execute(self, request: SweepRequest, attempt: Attempt) -> dict[str, Any]:  # noqa: ARG002 - nothing is asked
        """Bring back lapsed tasks, close the records of the dead, end sandboxes, settle; returns what was done."""
        self.services.ledger.born()  # a store that was emptied knows so soon, not at the next call
        attempt.at("republish")

        def enough() -> bool:
            return attempt.deadline.ended_by() is not None

        brought_back = republish(self.app, self.services.attempts, enough)
        closed = len(self.services.operations.close_lapsed())
        attempt.at("reap")
        reaped = reap(self.services, attempt.deadline)
        settled = settle_closed(self.app, self.services, enough)
        for kind, counts in (
            ("task", brought_back),
            ("operation", {"closed": closed}),
            ("sandbox", reaped),
            ("settlement", settled),
        ):
            metrics.swept(kind, counts)
        return {
            "tasks": dict(brought_back),
            "operations": closed,
            "sandboxes": dict(reaped),
            "settled": dict(settled),
        }


sweep = app.register_task(Sweep())
