"""Bring back the tasks whose worker is gone."""

import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any

from celery import Celery, states

from worker.failures.cause import Cause
from worker.failures.model import Category
from worker.observability.logs import logger
from worker.retrying import causes, envelope, outcome
from worker.retrying.failed import TaskFailed
from worker.retrying.stamp import Stamp
from worker.stores.attempts import TERMINAL, AttemptStore, Record
from worker.stores.redis import StoreError

log = logger(__name__)

BATCH = 200
"""Tasks taken from the index at once."""


def republish(app: Celery, attempts: AttemptStore, enough: Callable[[], bool]) -> Counter[str]:
    """Publish again what lapsed.

    Returns how many were ``published``, ``confirmed``, ``unsettled``, ``expired`` or ``failed``.
    A copy that the broker still holds does no harm: the record lets one of them run.
    """
    done: Counter[str] = Counter()
    # Whatever ends adds a record to look at: a busy hour must not keep a dead worker's task waiting behind it.
    while not enough() and (records := attempts.lapsed(BATCH)):
        done.update(_guarded(app, attempts, record) for record in records)
    return done


def _guarded(app: Celery, attempts: AttemptStore, record: Record) -> str:
    try:
        return _one(app, attempts, record)
    except StoreError:
        raise
    except Exception as exc:  # noqa: BLE001 - one message that cannot be published must not keep the others
        log.warning("not republished", lapsed_task_id=record.task_id, exception=type(exc).__name__)
    return "failed"


def _one(app: Celery, attempts: AttemptStore, record: Record) -> str:
    if record.envelope is None:
        attempts.confirm(record.task_id)
        return "confirmed"
    options = record.envelope["options"]
    if record.state in TERMINAL and record.unsettled:
        # The message and what it carries are needed to clean up; but the client must hear of the end meanwhile.
        if _told(app, record):
            return "unsettled"
    elif record.state in TERMINAL:
        # The outcome is in the record. Did it reach the client, or did the worker die in between?
        if _told(app, record):
            attempts.confirm(record.task_id)
            return "confirmed"
    elif _expired(options.get("expires")):
        _expire(app, attempts, record)
        return "expired"
    envelope.publish(app, record.envelope, Stamp(attempt=record.attempt, carry=record.carry))
    return "published"


def _expire(app: Celery, attempts: AttemptStore, record: Record) -> None:
    cause = Cause.of(causes.EXPIRED)
    payload = outcome.closed(cause, Category.CANCELLED, run_id=record.run_id)
    if attempts.close(record.task_id, state="cancelled", payload=payload, cause=str(cause)):
        app.backend.mark_as_failure(record.task_id, TaskFailed(payload))


def _told(app: Celery, record: Record) -> bool:
    """Whether the client can read the outcome, or did not want to."""
    return _ignored(app, record.envelope or {}) or app.AsyncResult(record.task_id).state in states.READY_STATES


def _ignored(app: Celery, message: dict[str, Any]) -> bool:
    """Whether nobody asked for the result; a message that does not say leaves it to its task."""
    task = app.tasks.get(message.get("task"))
    return bool(message.get("options", {}).get("ignore_result", getattr(task, "ignore_result", False)))


def _expired(expires: Any) -> bool:
    return isinstance(expires, str) and datetime.fromisoformat(expires).timestamp() <= time.time()
