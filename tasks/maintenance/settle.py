"""Clean up after tasks that were closed from outside their bodies: revoked, expired, past the hard time limit."""

from collections import Counter
from collections.abc import Callable

from celery import Celery

from worker.observability.logs import logger
from worker.retrying.closed import settle
from worker.retrying.services import Services
from worker.retrying.task import ClassifiedTask
from worker.stores.attempts import Record
from worker.stores.redis import is_outage

log = logger(__name__)


def settle_closed(app: Celery, services: Services, enough: Callable[[], bool]) -> Counter[str]:
    """End what such tasks left behind; returns how many were ``settled`` or ``failed`` (and are tried again)."""
    done: Counter[str] = Counter()
    while not enough() and (record := services.attempts.next_unsettled()):
        done[_one(app, services, record)] += 1
    return done


def _one(app: Celery, services: Services, record: Record) -> str:
    task = app.tasks.get(record.envelope["task"]) if record.envelope else None
    try:
        if isinstance(task, ClassifiedTask):
            settle(task, record)
    except Exception as exc:
        if is_outage(exc):
            raise
        # One task that cannot be settled must not keep the others.
        log.warning("not settled", settled_task_id=record.task_id, exception=type(exc).__name__)
        return "failed"
    services.attempts.settled(record.task_id)
    return "settled"
