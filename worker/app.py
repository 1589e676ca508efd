"""The Celery app: queues, routes, delivery rules and the signals that set a process up."""

import logging
import os
import sys
from typing import Any

from celery import Celery
from celery.signals import (
    beat_init,
    setup_logging,
    task_revoked,
    worker_init,
    worker_process_shutdown,
    worker_ready,
    worker_shutdown,
)
from kombu.entity import Exchange, Queue

from worker import startup
from worker.failures.cause import Cause
from worker.failures.model import Category
from worker.observability import logs, metrics, sentry
from worker.retrying import causes, outcome
from worker.retrying.message import run_id_of
from worker.retrying.services import services
from worker.settings import Settings, is_redis, settings
from worker.stores.redis import StoreError

log = logs.logger(__name__)

QUEUES = ("clone", "copy_back", "dispatch", "lifecycle", "maintenance")
JOBS = {
    "sandbox.clone": "clone",
    "workspace.copy_back": "copy_back",
    "tool.dispatch": "dispatch",
    "sandbox.extend": "lifecycle",
    "sandbox.release": "lifecycle",
    "maintenance.sweep": "maintenance",
}
"""Task name -> queue."""
ROUTES = {name: {"queue": queue} for name, queue in JOBS.items()}
TASKS = tuple(f"tasks.{job}.task" for job in ("clone", "copy_back", "dispatch", "lifecycle", "maintenance"))

HARD_LIMIT_MARGIN = 120.0
"""Seconds past the longest deadline after which the pool kills a body; our own deadlines come first."""


def configuration(config: Settings) -> dict[str, Any]:
    """Celery's settings. Each that is not a default has its reason in docs/operations.md."""
    hard = config.longest_job + HARD_LIMIT_MARGIN
    return {
        "broker_url": config.broker_url,
        "result_backend": config.results_url,
        "include": TASKS,
        # Delivery: a message is acknowledged when its outcome is stored.
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_track_started": False,
        "worker_consumer": "worker.retrying.consumer:LastingConsumer",
        "worker_prefetch_multiplier": 1,
        "worker_disable_prefetch": is_redis(config.broker_url),
        "worker_eta_task_limit": config.eta_task_limit,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "worker_soft_shutdown_timeout": config.soft_shutdown,
        "worker_enable_soft_shutdown_on_idle": True,
        "task_time_limit": hard,
        "task_soft_time_limit": hard - HARD_LIMIT_MARGIN / 2,
        "broker_transport_options": _transport_options(config),
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "task_publish_retry_policy": {"max_retries": 5, "interval_start": 0, "interval_step": 0.2, "interval_max": 1},
        # Results: bounded retries, so that a backend that stays away is noticed.
        "result_backend_always_retry": True,
        "result_backend_max_retries": 20,
        "result_expires": config.result_expires,
        "result_extended": False,
        # Formats: JSON only, both ways.
        "task_serializer": "json",
        "result_serializer": "json",
        "accept_content": ["json"],
        "result_accept_content": ["json"],
        # What is seen.
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "worker_send_task_events": True,
        "task_send_sent_event": False,
        # Queues.
        "task_queues": [Queue(name, Exchange(name), routing_key=name) for name in QUEUES],
        "task_routes": ROUTES,
        "task_default_queue": "lifecycle",
        "task_create_missing_queues": False,
        "beat_schedule": {
            "sweep": {
                "task": "maintenance.sweep",
                "schedule": config.sweep_every,
                "kwargs": {"request": {"schema": 1}},
                "options": {"expires": config.sweep_every * 3},
            }
        },
    }


def _transport_options(config: Settings) -> dict[str, Any]:
    if is_redis(config.broker_url):
        return {
            "visibility_timeout": config.visibility_timeout,
            "socket_timeout": 30,
            "socket_keepalive": True,
            "health_check_interval": 30,
        }
    return {"confirm_publish": True}


def make_app(config: Settings) -> Celery:
    """Make the app of a worker, of beat or of a command."""
    made = Celery("sandferry", set_as_current=True)
    made.conf.update(configuration(config))
    return made


app = make_app(settings())


@setup_logging.connect
def _logging(**_: Any) -> None:
    logs.configure(settings())
    # At DEBUG the pool writes down every message it applies, arguments and all.
    logging.getLogger("celery.pool").setLevel(logging.INFO)


@worker_init.connect
def _before_the_pool_forks(**_: Any) -> None:
    try:
        _refuse(startup.faults(settings(), app.conf))
        metrics.prepare(settings())
        sentry.init(settings())
    except Exception as exc:  # noqa: BLE001 - Celery would go on without what was to be set up, and not say so
        sys.exit(f"sandferry: the worker cannot be set up ({type(exc).__name__})")


@beat_init.connect
def _before_beat(**_: Any) -> None:
    _refuse(startup.beat_faults(settings()))
    sentry.init(settings())


def _refuse(faults: list[startup.Fault]) -> None:
    """End the process: an exception would not, Celery goes on after a receiver that raises one."""
    if faults:
        sys.exit("\n".join(f"sandferry: {fault}" for fault in faults))


@worker_ready.connect
def _serve_metrics(**_: Any) -> None:
    metrics.serve(settings(), sandboxes=services().sandboxes.count)


@worker_ready.connect
def _notice(**_: Any) -> None:
    for notice in startup.notices(settings(), dict(os.environ)):
        log.warning("a setting wants a look", setting=notice.setting, consequence=notice.consequence)


@worker_ready.connect
def _warn_of_the_store(**_: Any) -> None:
    try:
        found = startup.warnings(settings(), services().client)
    except StoreError:
        return  # away, or a managed one that does not say: doctor tells
    for warning in found:
        log.warning("the store may lose what it keeps", setting=warning.setting, consequence=warning.consequence)


@worker_process_shutdown.connect
def _child_ends(**_: Any) -> None:
    sentry.flush()


@worker_shutdown.connect
def _worker_ends(**_: Any) -> None:
    sentry.flush()
    metrics.close()


@worker_ready.connect
def _ledger_is_born(**_: Any) -> None:
    """Give the ledger its birth time before the first call comes: it cannot vouch for what is older."""
    try:
        services().ledger.born()
    except StoreError:
        log.warning("birth of the ledger not written, left to the first call")


@task_revoked.connect
def _close_revoked(request: Any = None, expired: bool = False, **_: Any) -> None:  # noqa: FBT001, FBT002 - Celery's names
    """Close the record of a revoked task, or the sweep would bring the task back."""
    cause = Cause.of(causes.EXPIRED if expired else causes.REVOKED)
    payload = outcome.closed(cause, Category.CANCELLED, run_id=run_id_of(request.kwargs or {}))
    try:
        services().attempts.close(request.id, state="cancelled", payload=payload, cause=str(cause))
    except StoreError:
        log.warning("record not closed, left to the sweep", task_id=request.id)
