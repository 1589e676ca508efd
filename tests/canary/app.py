"""The worker of the canary suite: the real one with short waits, and a job that fails with a secret in its hands.

``CANARY_FENCES=down`` takes down what keeps secrets in, for the self-proof: a suite that then finds nothing is blind.
"""

import os
from typing import Any, ClassVar

from kombu import Queue

from worker.app import app
from worker.failures.cause import Cause
from worker.failures.model import Failure, OperationFailed, Verdict
from worker.failures.schedule import Schedule
from worker.observability import logs, metrics, scrub
from worker.retrying import attempt as attempts_module
from worker.retrying import request as requests
from worker.retrying import task as task_module
from worker.retrying.attempt import Attempt
from worker.retrying.task import ClassifiedTask
from worker.secrets.redaction import Redactor
from worker.stores import attempts
from worker.stores import events as event_store

attempts.GRACE = 1.0
task_module.LATE_CREATE = 1.0
app.conf.task_queues = [*app.conf.task_queues, Queue("canary")]
app.conf.task_routes = {**app.conf.task_routes, "canary.*": {"queue": "canary"}}


class Leak(ClassifiedTask):
    """``how`` is ``chained``, ``text`` (a command's last words) or ``sleep``; the request holds ``secret``."""

    name = "canary.leak"
    operation: ClassVar[str] = "clone"
    code: ClassVar[str] = "clone_failed"
    event: ClassVar[str] = "sandbox.git"
    schedule: ClassVar[Schedule] = Schedule(attempts=2, countdowns=(0.5,), deadline=30, jitter=0.0)

    def parse(self, payload: Any) -> Any:
        return payload

    def execute(self, request: Any, attempt: Attempt) -> dict[str, Any]:
        secret = request["secret"]
        metrics.step("clone", secret if FENCES_DOWN else "clone", 0.1)
        attempt.emit("canary.told", reason=secret + " is not of our alphabet!")
        if request["how"] == "sleep":
            attempt.deadline.wait(1.5)
            return {}
        if request["how"] == "text":
            raise OperationFailed(Failure(operation="clone", stage="clone", exit_code=128, text=secret))
        try:
            raise OSError(secret)  # noqa: TRY301 - the chain is what is tested
        except OSError as exc:
            raise RuntimeError(f"wrapped {secret}") from exc


class RawCause(str):
    """What a cause would be if it were the text of the failure."""

    __slots__ = ()
    code = "clone_failed"
    fields = ()


def _raw_cause(_task: ClassifiedTask, failure: Failure, _verdict: Verdict) -> Any:
    return RawCause(failure.text) if failure.text else Cause.of("clone_failed")


def take_down() -> None:
    """Everything that hides, drops or masks becomes a window."""
    requests.RedactingRequest.__init__ = requests.Request.__init__
    requests.RedactingRequest.info = requests.Request.info
    requests.RedactingRequest.send_event = requests.Request.send_event
    logs.UnknownTaskFilter.filter = logs.ResultFilter.filter = lambda _self, _record: True
    scrub.event = dict
    event_store.allowed = attempts_module.allowed = scrub.allowed = dict
    Redactor.redact = lambda _self, text: text
    ClassifiedTask.cause = _raw_cause


FENCES_DOWN = os.environ.get("CANARY_FENCES") == "down"
if FENCES_DOWN:
    take_down()
leak = app.register_task(Leak())
