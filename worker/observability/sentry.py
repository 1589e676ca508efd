"""Sentry: one event per final failure, with the events of its task as breadcrumbs; nothing raw.

Sentry's own Celery integration stays off: it wraps every task, adds headers to every retry and reports what the pool
says about dead children as events of their own. What a task came to is known where its record is closed, and is
reported from there.
"""

import logging
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import sentry_sdk
from sentry_sdk.integrations.excepthook import ExcepthookIntegration
from sentry_sdk.integrations.logging import LoggingIntegration, ignore_logger

from worker.failures.model import Category
from worker.observability import scrub
from worker.settings import Settings
from worker.stores.events import Event

FLUSH = 2.0
"""Seconds that the end of a process may wait for events that are on their way."""

USER_SIDE = frozenset({Category.INVALID_REQUEST, Category.AUTH_DENIED, Category.NOT_FOUND})
"""Failures that only whoever sent the request can mend: level ``warning``, so that alerts can leave them out."""
UNREPORTED = frozenset({Category.CANCELLED})
"""What somebody asked for is no failure."""


def init(config: Settings) -> None:
    """Start the SDK; must happen before the pool forks. Without a DSN it stays off."""
    if config.sentry_dsn_file is None:
        return
    # These lines hold whole messages.
    ignore_logger("celery.worker.consumer.consumer")
    sentry_sdk.init(
        dsn=config.sentry_dsn_file.read_text(encoding="ascii").strip(),
        release=f"sandferry@{version('sandferry')}",
        default_integrations=False,
        auto_enabling_integrations=False,
        # A worker that ends by a fault: Celery writes a critical line, Python calls the hook.
        integrations=[LoggingIntegration(level=None, event_level=logging.CRITICAL), ExcepthookIntegration()],
        include_local_variables=False,
        send_default_pii=False,
        max_request_body_size="never",
        auto_session_tracking=False,
        before_send=lambda event, _: scrub.event(event),  # type: ignore[arg-type, return-value]  # Sentry's TypedDict
        before_breadcrumb=lambda crumb, _: scrub.breadcrumb(crumb),
    )


def active() -> bool:
    """Whether events are sent."""
    return sentry_sdk.get_client().is_active()


def isolated() -> AbstractContextManager[Any]:
    """Keep what is noted in this block to this block: nothing bleeds from one task to the next."""
    return sentry_sdk.isolation_scope() if active() else nullcontext()


def breadcrumb(name: str, data: Mapping[str, Any]) -> None:
    """Leave one breadcrumb for an event; ``data`` is the event's allowed part."""
    sentry_sdk.add_breadcrumb(category=scrub.OURS, message=name, data=dict(data), level="info")


def failure(
    payload: Mapping[str, Any], *, task: str, task_id: str, stage: str, provider: str, timeline: Iterable[Event]
) -> None:
    """Send a final failure; ``payload`` is that of `TaskFailed`.

    ``timeline`` is what is known of all attempts of the task, in whichever processes they ran. Empty: the
    breadcrumbs of this process stand.
    """
    if not active() or payload["category"] in UNREPORTED:
        return
    with sentry_sdk.isolation_scope() as scope:
        crumbs = [_crumb(event) for event in timeline]
        if crumbs:
            scope.clear_breadcrumbs()
        for crumb in crumbs:
            scope.add_breadcrumb(crumb)
        sentry_sdk.capture_event(
            {
                "logger": scrub.OURS,
                "level": "warning" if payload["category"] in USER_SIDE else "error",
                "message": payload["cause"],
                "fingerprint": [task, payload["category"], stage],
                "tags": {
                    "task": task,
                    "task_id": task_id,
                    "run_id": payload["run_id"],
                    "provider": provider,
                    "category": payload["category"],
                    "code": payload["code"],
                    "stage": stage,
                    "attempt": str(payload["attempt"]),
                    "exhausted": str(payload["exhausted"]).lower(),
                },
                "contexts": {scrub.OURS: dict(payload)},
            }
        )


def flush() -> None:
    """Wait for events that are on their way, at most :data:`FLUSH` seconds."""
    if active():
        sentry_sdk.flush(FLUSH)


def _crumb(event: Event) -> dict[str, Any]:
    at = datetime.fromtimestamp(event.time, UTC)
    return {"category": scrub.OURS, "message": event.name, "data": event.data, "level": "info", "timestamp": at}
