"""Bring back the tasks whose worker is gone."""

import time
from collections import Counter
from datetime import datetime
from typing import Any

from celery import Celery, states

from worker.failures.cause import Cause
from worker.failures.model import Category
from worker.retrying import causes, envelope, outcome
from worker.retrying.failed import TaskFailed
from worker.retrying.stamp import Stamp
from worker.stores.attempts import TERMINAL, AttemptStore, Record

BATCH = 200
"""Tasks looked at in one sweep; more wait for the next."""


def republish(app: Celery, attempts: AttemptStore) -> Counter[str]:
    """Publish again what lapsed; returns how many were ``published``, ``confirmed``, ``expired``.

    A copy that the broker still holds does no harm: the record lets one of them run.
    """
    done: Counter[str] = Counter()
    for record in attempts.lapsed(BATCH):
        done[_one(app, attempts, record)] += 1
    return done


def _one(app: Celery, attempts: AttemptStore, record: Record) -> str:
    if record.envelope is None:
        attempts.confirm(record.task_id)
        return "confirmed"
    options = record.envelope["options"]
    if record.state in TERMINAL:
        # The outcome is in the record. Did it reach the client, or did the worker die in between?
        if options.get("ignore_result") or app.AsyncResult(record.task_id).state in states.READY_STATES:
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


def _expired(expires: Any) -> bool:
    return isinstance(expires, str) and datetime.fromisoformat(expires).timestamp() <= time.time()
