"""The base of every task: an exception becomes a verdict, the verdict's countdown becomes the retry.

The attempt record decides who runs. A body costs two round trips to it: one script at its start, one at its end.
"""

import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, NoReturn

from celery import Task
from celery.exceptions import Ignore, Reject, Retry
from celery.utils import uuid

from worker.failures.cause import Cause
from worker.failures.classify import classify
from worker.failures.model import Category, Failure, Verdict
from worker.failures.schedule import Schedule, decide
from worker.observability import logs, metrics, sentry
from worker.retrying import envelope, outcome
from worker.retrying.attempt import Attempt, Postponed, keep_lease
from worker.retrying.causes import QUEUE_WAIT, WORKER_LOST, cause_of, not_started
from worker.retrying.facts import facts
from worker.retrying.failed import TaskFailed
from worker.retrying.message import owner, request_of, run_id_of
from worker.retrying.patience import patient
from worker.retrying.reporting import report, report_closed
from worker.retrying.services import Services, services
from worker.retrying.stamp import Stamp
from worker.retrying.telling import keep_tail, tell
from worker.sandboxes.deadline import Deadline
from worker.stores.attempts import Begun, Terminal, Turned
from worker.stores.redis import StoreError, is_outage

log = logs.logger(__name__)

POSTPONED = 2.0
"""Seconds, and up to as many again, until a job asks once more for a slot of its provider."""
MAX_DEATHS = 3
"""Bodies of one attempt that may die with their process before the task is given up."""


class ClassifiedTask(Task):  # type: ignore[misc]  # Celery is untyped
    """A job. Subclasses say what a request is and what to do; the rest is here.

    One instance serves a whole process, threads included: nothing of a run is kept on ``self``.
    """

    abstract = True
    Request = "worker.retrying.request:RedactingRequest"
    # Attempts are counted in the record; Celery's own bound would stick to the process (celery.md row 5).
    max_retries = None
    acks_late = True
    reject_on_worker_lost = True
    typing = False
    # Ours are expected: Celery logs them as one INFO line without a traceback.
    throws = (TaskFailed,)

    operation: ClassVar[str]
    """Member of the vocabulary's operations."""
    code: ClassVar[str]
    """Code of the causes this job fails with."""
    event: ClassVar[str | None] = None
    """Prefix of its ``retrying`` and ``failed`` events."""
    schedule: ClassVar[Schedule]
    heeds_cancel: ClassVar[bool] = True
    """Whether the cancel of its run ends this job; cleaning up after a run must not be."""

    def parse(self, payload: Any) -> Any:
        """Validate a request. Raises :class:`InvalidRequest`."""
        raise NotImplementedError

    def execute(self, request: Any, attempt: Attempt) -> dict[str, Any]:
        """Do the work once; returns the JSON result, raises anything."""
        raise NotImplementedError

    def settle(self, request: Any, attempt: Attempt, verdict: Verdict | None) -> None:
        """Clean up after the last attempt; ``verdict`` is ``None`` after success."""

    def note(self, request: Any, attempt: Attempt, verdict: Verdict, cause: Cause) -> None:
        """Write a failed attempt down where this job keeps records of its own."""

    @property
    def services(self) -> Services:
        """What the process has: stores, providers, keys."""
        return services()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run one delivery of a message."""
        with sentry.isolated():
            ended = self._deliver(args, kwargs)
        # Raised here, outside every except block: no __context__ carries the raw cause to the result's
        # traceback, to events, logs or Sentry.
        if isinstance(ended, BaseException):
            raise ended
        return ended

    def run(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Never called: the worker calls the task itself."""
        raise NotImplementedError

    def _deliver(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        message = self.request
        stamp = Stamp.read(message.headers, message.retries)
        run_id = run_id_of(kwargs)
        delivery = uuid()
        logs.bind(task=self.name, task_id=message.id, run_id=run_id, attempt=stamp.attempt)
        try:
            begun = patient(
                lambda: self.services.attempts.begin(
                    message.id,
                    attempt=stamp.attempt,
                    owner=owner(message.hostname, os.getpid()),
                    envelope=envelope.of(self.name, message),
                    run_id=run_id,
                    delivery=delivery,
                    carry=stamp.carry,
                )
            )
            if isinstance(begun, Turned):
                return self._repeat(begun)
            return self._body(args, kwargs, stamp, run_id, begun)
        except Exception as exc:  # noqa: BLE001 - a fault of ours outside a body must not leave the worker raw either
            if is_outage(exc):
                # Nobody can say who may run. The broker keeps the message, or the sweep finds the lapsed lease.
                log.warning("record store away, message put back")
                return Reject("record store away", requeue=True)
            return self._broken(message.id, run_id, type(exc).__name__)
        finally:
            logs.clear()

    def _repeat(self, turned: Turned) -> Any:
        """Answer a duplicate with what is stored, so that it never un-finishes a result."""
        log.info("duplicate delivery", why=turned.why, state=turned.state)
        match turned:
            case Turned(why="done", state="succeeded"):
                return turned.payload
            case Turned(why="done"):
                return TaskFailed(turned.payload)
        # A later attempt or a living body will write the result; this copy leaves no trace.
        return Ignore()

    def _broken(self, task_id: str, run_id: str, exception: str) -> TaskFailed:
        log.error("delivery broken", exception=exception)
        cause = Cause.of("internal_error", exception=exception)
        payload = outcome.closed(cause, Category.UNKNOWN, run_id=run_id)
        with suppress(StoreError):
            self.services.attempts.close(task_id, state="failed", payload=payload, cause=str(cause))
        report_closed(self.services, self.name, task_id, payload)
        return TaskFailed(payload)

    def _body(self, args: tuple[Any, ...], kwargs: dict[str, Any], stamp: Stamp, run_id: str, begun: Begun) -> Any:
        attempt = Attempt(
            task_id=self.request.id,
            run_id=run_id,
            operation=self.operation,
            number=stamp.attempt,
            attempts=self.schedule.attempts,
            fence=begun.fence,
            spent=begun.spent,
            first_seen=begun.first_seen,
            carry=begun.carry,
            deadline=Deadline.after(max(0.0, self.schedule.deadline - begun.spent)),
            events=self.services.events,
        )
        if begun.cancelled and self.heeds_cancel:
            attempt.deadline.cancel.set()
        metrics.began(self.name, max(begun.waited, stamp.waited(begun.now)))
        request: Any = None
        failure: Failure | None = None
        postponed: str | None = None
        result: dict[str, Any] = {}
        with attempt.resources:
            keep_lease(attempt, self.services.attempts, heed_cancel=self.heeds_cancel)
            try:
                # Parsed first: what is given up before its start is settled all the same.
                request = self.parse(request_of(args, kwargs))
                self._may_start(begun, stamp)
                attempt.at(attempt.stage)
                result = self.execute(request, attempt)
            except Postponed as exc:
                postponed = exc.reason
            except Exception as exc:  # noqa: BLE001 - whatever it was, the classifier judges it
                failure = self.facts_of(exc, attempt)
            attempt.end()
            if postponed is not None:
                return self._postpone(request, attempt, postponed)
            if failure is None:
                return self._succeed(request, attempt, result)
            return self._fail(request, attempt, failure)

    def _may_start(self, begun: Begun, stamp: Stamp) -> None:
        if begun.deaths >= MAX_DEATHS:
            raise not_started(self.operation, WORKER_LOST)
        if max(begun.waited, stamp.waited(begun.now)) > self.services.settings.queue_wait:
            raise not_started(self.operation, QUEUE_WAIT)

    def _succeed(self, request: Any, attempt: Attempt, result: dict[str, Any]) -> Any:
        if not self._end(attempt, "succeeded", result, cause="", spent=attempt.spent + attempt.elapsed()):
            return Ignore()
        metrics.ended(self.name, attempt.provider_name, "succeeded")
        self._settle(request, attempt, None)
        return result

    def _end(self, attempt: Attempt, state: Terminal, payload: dict[str, Any], *, cause: str, spent: float) -> bool:
        """Record the outcome first: only the owner may settle, and what it leaves behind the reaper finds."""
        return patient(
            lambda: self.services.attempts.end_terminal(
                attempt.task_id, attempt=attempt.number, fence=attempt.fence, state=state, payload=payload,
                cause=cause, spent=spent,
            )
        )  # fmt: skip

    def _fail(self, request: Any, attempt: Attempt, failure: Failure) -> Any:
        spent = attempt.spent + attempt.elapsed()
        remaining = attempt.deadline.remaining()
        verdict = self.judge(failure, attempt, remaining)
        cause = self.cause(failure, verdict)
        payload = outcome.payload(
            cause, verdict, attempt=attempt.number, attempts=attempt.attempts, run_id=attempt.run_id,
            now=time.time(), remaining=remaining,
        )  # fmt: skip
        keep_tail(self.services.diagnostics, attempt, failure)
        told = partial(self._tell, request, attempt, verdict=verdict, cause=cause, failure=failure, payload=payload)
        if verdict.retry and verdict.countdown is not None:
            return self._wait(attempt, payload, verdict.countdown, spent, told)
        state: Terminal = "cancelled" if verdict.category is Category.CANCELLED else "failed"
        if not self._end(attempt, state, payload, cause=str(cause), spent=spent):
            return Ignore()
        told()
        self._settle(request, attempt, verdict)
        return TaskFailed(payload)

    def _postpone(self, request: Any, attempt: Attempt, reason: str) -> Any:
        """Make the same attempt later, as long as the time in the queue is not over."""
        if time.time() - attempt.first_seen > self.services.settings.queue_wait:
            return self._fail(request, attempt, not_started(self.operation, QUEUE_WAIT).failure)
        countdown = POSTPONED * (1 + random.random())  # noqa: S311 - spreads waiting jobs
        verdict = Verdict(category=Category.RESOURCE_EXHAUSTED, reason=reason, retry=True, countdown=countdown)
        failure = Failure(operation=self.operation, stage=attempt.stage)
        payload = outcome.payload(
            self.cause(failure, verdict), verdict, attempt=attempt.number, attempts=attempt.attempts,
            run_id=attempt.run_id, now=time.time(), remaining=attempt.deadline.remaining(),
        )  # fmt: skip
        log.info("attempt postponed", reason=reason)
        return self._wait(attempt, payload, countdown, attempt.spent, lambda: None, counts=False)

    def _wait(
        self, attempt: Attempt, payload: dict[str, Any], countdown: float, spent: float, told: Callable[[], None],
        *, counts: bool = True,
    ) -> Any:  # fmt: skip
        """Record the retry, then publish it: what is recorded but not published, the sweep publishes."""
        kept = patient(
            lambda: self.services.attempts.end_waiting(
                attempt.task_id, attempt=attempt.number, fence=attempt.fence, payload=payload,
                cause=payload["cause"] if counts else "", countdown=countdown,
                spent=spent + countdown if counts else spent, carry=attempt.carry, counts=counts,
            )
        )  # fmt: skip
        if not kept:
            return Ignore()
        told()
        failed = TaskFailed(payload)
        stamp = Stamp(attempt=attempt.number + counts, carry=attempt.carry)
        try:
            return self.retry(exc=failed, countdown=countdown, headers=stamp.headers(self.request.headers), throw=False)
        except Reject:
            log.warning("retry not published, left to the sweep")
        return Retry(exc=failed, when=countdown)

    def facts_of(self, exc: BaseException, attempt: Attempt) -> Failure:
        """Read what a body raised, or what kept it from its start."""
        return facts(exc, attempt)

    def judge(self, failure: Failure, attempt: Attempt, remaining: float) -> Verdict:
        """Turn facts into a verdict by this job's schedule."""
        return decide(
            failure,
            match=classify(failure, horizon=self.services.settings.replication_horizon),
            schedule=self.schedule,
            attempt=attempt.number,
            remaining=remaining,
            random=random.random,
        )

    def cause(self, failure: Failure, verdict: Verdict) -> Cause:
        """Say what may leave the worker of a failure."""
        return cause_of(self.code, failure, verdict)

    def _tell(
        self, request: Any, attempt: Attempt, *, verdict: Verdict, cause: Cause, failure: Failure,
        payload: dict[str, Any],
    ) -> None:  # fmt: skip
        tell(attempt, self.event, verdict=verdict, cause=cause, failure=failure)
        self._safely(
            lambda: report(self.services, self.name, attempt, verdict=verdict, stage=failure.stage, payload=payload)
        )
        if request is not None:
            self._safely(lambda: self.note(request, attempt, verdict, cause))

    def _settle(self, request: Any, attempt: Attempt, verdict: Verdict | None) -> None:
        if request is not None:
            self._safely(lambda: self.settle(request, attempt, verdict))

    def _safely(self, after: Callable[[], None]) -> None:
        """What comes after an outcome was recorded: the outcome stands, what was left behind the sweep finds."""
        try:
            after()
        except Exception as exc:  # noqa: BLE001 - see above
            log.warning("not settled", exception=type(exc).__name__)
