"""The worker's side of a message: arguments are never shown, a dead body frees its lease."""

from typing import Any

from billiard.exceptions import TimeLimitExceeded, WorkerLostError
from celery.exceptions import InvalidTaskError
from celery.worker.request import Request
from celery.worker.state import task_ready

from worker.failures.cause import Cause
from worker.failures.model import Category
from worker.observability import metrics
from worker.observability.logs import logger
from worker.retrying import causes, outcome
from worker.retrying.failed import TaskFailed
from worker.retrying.message import owner, run_id_of
from worker.retrying.reporting import Delivery, died, timed_out
from worker.retrying.services import services
from worker.retrying.stamp import Stamp
from worker.stores.redis import StoreError

log = logger(__name__)

HIDDEN = "<hidden>"


class RedactingRequest(Request):  # type: ignore[misc]  # Celery is untyped
    """Runs in the worker's main process."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # An AttributeError is what kombu 5.7 raises for a message whose connection is gone; unlisted, it ends the
        # worker. The broker hands the message out again, and the record answers that copy.
        errors = (*kwargs.pop("connection_errors", ()), AttributeError)
        try:
            super().__init__(*args, connection_errors=errors, **kwargs)
        except InvalidTaskError:
            raise
        except Exception as exc:  # noqa: BLE001 - a message that Celery cannot read would end the worker
            raise InvalidTaskError(type(exc).__name__) from None
        # Celery puts these into logs, events and `inspect`, and loses a producer's own on every retry.
        self._argsrepr = self._kwargsrepr = HIDDEN
        self._request_dict["argsrepr"] = self._request_dict["kwargsrepr"] = HIDDEN
        # A name that the sender chose would stand in every line and event in the place of the task's.
        self.name, self._request_dict["shadow"] = self._request_dict["task"], None
        metrics.consumed()

    def info(self, safe: bool = False) -> Any:  # noqa: ARG002, FBT001, FBT002 - Celery's signature
        """Describe the request to `inspect`, without its arguments."""
        return super().info(safe=True)

    def send_event(self, type: str, **fields: Any) -> Any:  # noqa: A002 - Celery's signature
        """Send an event without the return value: what a tool printed is its caller's."""
        if "result" in fields:
            fields["result"] = HIDDEN
        return super().send_event(type, **fields)

    def on_failure(self, exc_info: Any, send_failed_event: bool = True, return_ok: bool = False) -> Any:  # noqa: FBT001, FBT002
        """Before a lost worker's message goes back to the queue, free the lease of the body that died."""
        exc = getattr(exc_info.exception, "exc", exc_info.exception)
        if isinstance(exc, TimeLimitExceeded):
            # The pool calls `on_timeout` next. Celery would tell the client its own words first.
            return None
        if isinstance(exc, WorkerLostError | SystemExit | KeyboardInterrupt):
            self._free_lease()
            died(services(), self._delivery(), exc)
        return super().on_failure(exc_info, send_failed_event, return_ok)

    def cancel(self, pool: Any, signal: Any = None, emit_retry: bool = True) -> Any:  # noqa: FBT001, FBT002
        """Free the lease of a body that a cold shutdown ends, so that its message may run elsewhere at once."""
        super().cancel(pool, signal, emit_retry)
        self._free_lease(handed_on=True)

    def _delivery(self) -> Delivery:
        headers = self._request_dict
        attempt = Stamp.read(headers, headers.get("retries") or 0).attempt
        return Delivery(task=self.name, task_id=self.id, run_id=run_id_of(self.kwargs), attempt=attempt)

    def _free_lease(self, *, handed_on: bool = False) -> None:
        if not self.worker_pid:
            return
        try:
            services().attempts.disown(self.id, owner=owner(self.hostname, self.worker_pid), handed_on=handed_on)
        except StoreError:
            log.warning("lease not freed, left to the sweep", task_id=self.id)

    def on_timeout(self, soft: bool, timeout: float) -> Any:  # noqa: FBT001
        """A hard time limit killed the body: tell the client in our form. A soft one is the body's own affair."""
        if soft:
            return super().on_timeout(soft, timeout)
        task_ready(self)
        cause = Cause.of(causes.HARD_TIMEOUT)
        payload = outcome.closed(cause, Category.TIMEOUT_AMBIGUOUS, run_id=run_id_of(self.kwargs))
        if self._close(payload):
            timed_out(services(), self._delivery(), self.task.event, payload, timeout)
            failed = TaskFailed(payload)
            self.task.backend.mark_as_failure(self.id, failed, request=self._context, store_result=self.store_errors)
            self.send_event("task-failed", exception=repr(failed), traceback=None)
        return self.acknowledge()

    def _close(self, payload: dict[str, Any]) -> bool:
        """Close the record as failed. False: the body had recorded an outcome, which the sweep will tell."""
        try:
            return services().attempts.close(self.id, state="failed", payload=payload, cause=payload["cause"])
        except StoreError:
            log.warning("record not closed, left to the sweep", task_id=self.id)
        return True
