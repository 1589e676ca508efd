"""Flower's picture, kept clean and kept true.

Clean: every event passes :func:`worker.observability.flowerevents.shown` before Flower has it. True: events are sent
once and may be missed, so that a finished task would look as if it ran for ever; what has been silent for a while is
looked up in the result backend.
"""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from celery import states
from flower.events import Events, EventsState

from worker.observability.flowerevents import shown
from worker.observability.logs import logger

log = logger(__name__)

EVERY = 10.0
"""Seconds between two looks."""
SILENT = 30.0
"""Seconds without an event after which a task is looked up."""
MOST = 200
"""Tasks looked up at once."""

_EVENTS = {states.SUCCESS: "task-succeeded", states.FAILURE: "task-failed", states.REVOKED: "task-revoked"}


def install() -> None:
    """Put both before Flower's own; once a process."""
    take, start = EventsState.event, Events.start

    def event(self: EventsState, raw: dict[str, Any]) -> None:
        take(self, shown(raw))

    def begin(self: Events) -> None:
        start(self)
        threading.Thread(target=_watch, args=(self,), name="sandferry-reconcile", daemon=True).start()

    EventsState.event, Events.start = event, begin


def _watch(events: Any) -> None:
    while True:
        time.sleep(EVERY)
        try:
            for missed in reconcile(list(events.state.tasks.values()), events.capp.backend.get_task_meta, time.time()):
                # Flower's state belongs to the thread of its event loop.
                events.io_loop.add_callback(partial(events.state.event, missed))
        except Exception as exc:  # noqa: BLE001 - a backend that is away, a list that changes: the next look is near
            log.warning("tasks not looked up", exception=type(exc).__name__)


def reconcile(tasks: list[Any], look_up: Callable[[str], dict[str, Any]], now: float) -> list[dict[str, Any]]:
    """The final events that were missed: of tasks that Flower shows as unfinished, and the result backend as over."""
    open_ = [task for task in tasks if task.state not in states.READY_STATES and now - task.timestamp > SILENT]
    return [missed for task in open_[:MOST] if (missed := _missed(task, look_up(task.uuid), now)) is not None]


def _missed(task: Any, meta: dict[str, Any], now: float) -> dict[str, Any] | None:
    kind = _EVENTS.get(meta["status"])
    if kind is None:
        return None
    more = {"exception": repr(meta["result"])} if kind == "task-failed" else {}
    hostname = task.worker.hostname if task.worker is not None else "unknown"
    base = {"type": kind, "uuid": task.uuid, "hostname": hostname, "clock": task.clock + 1}
    return {**base, "timestamp": now, "local_received": now, **more}
