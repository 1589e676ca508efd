"""What an outcome leaves for operators: a count, and a Sentry event if it is final."""

import re
from signal import Signals
from typing import Any

from worker.failures.model import Verdict
from worker.observability import metrics, sentry
from worker.observability.logs import logger
from worker.retrying.attempt import Attempt
from worker.retrying.services import Services
from worker.stores.events import Event, Value
from worker.stores.redis import StoreError

log = logger(__name__)

_BY_SIGNAL = re.compile(r"signal ([0-9]{1,2}) \(")
"""How billiard says what ended a child (`Worker exited prematurely: signal 9 (SIGKILL) Job: 3.`)."""

_SIGNALS = {int(number): number.name for number in Signals}


def report(
    services: Services, task: str, attempt: Attempt, *, verdict: Verdict, stage: str, payload: dict[str, Any]
) -> None:  # fmt: skip
    """Report an attempt that failed at ``stage``."""
    category, provider = str(verdict.category), attempt.provider_name
    if verdict.retry and verdict.countdown is not None:
        metrics.ended(task, provider, "retried", category, countdown=verdict.countdown)
        return
    _final(services, task, attempt.task_id, payload, stage=stage, provider=provider)


def report_closed(services: Services, task: str, task_id: str, payload: dict[str, Any]) -> None:
    """Report a task that was closed from outside its body."""
    _final(services, task, task_id, payload, stage="none", provider="none")


def timed_out(
    services: Services, task: Any, task_id: str, attempt: int, payload: dict[str, Any], limit: float
) -> None:  # fmt: skip
    """Report a body that the pool killed at its hard time limit (seconds); runs in the main process."""
    keys = {"task_id": task_id, "attempt": attempt}
    log.error("hard time limit", task=task.name, run_id=payload["run_id"], **keys, timeout_s=limit)
    if task.event is not None:
        seen = {key: payload[key] for key in ("category", "code", "cause")}
        _note(services, payload["run_id"], f"{task.event}.failed", {**keys, **seen})
    report_closed(services, task.name, task_id, payload)


def died(services: Services, task: str, task_id: str, attempt: int, run_id: str, exc: BaseException) -> None:
    """Note a body that died with its process; it runs again, or ends as ``worker_lost``. In the main process."""
    seen = {"task_id": task_id, "attempt": attempt, **_ending(exc)}
    log.error("worker lost", task=task, run_id=run_id, **seen)
    metrics.ended(task, "none", "lost", "none")
    _note(services, run_id, "worker.lost", seen)


def _ending(exc: BaseException) -> dict[str, Value]:
    if isinstance(exc, SystemExit):
        return {"exit_code": exc.code if isinstance(exc.code, int) else None}
    found = _BY_SIGNAL.search(str(exc))
    return {"signal": _SIGNALS.get(int(found[1])) if found else None}


def _final(
    services: Services, task: str, task_id: str, payload: dict[str, Any], *, stage: str, provider: str
) -> None:  # fmt: skip
    state = "cancelled" if payload["category"] == "cancelled" else "failed"
    metrics.ended(task, provider, state, payload["category"], code=payload["code"])
    if sentry.active():
        timeline = _timeline(services, payload["run_id"], task_id)
        sentry.failure(payload, task=task, task_id=task_id, stage=stage, provider=provider, timeline=timeline)


def _timeline(services: Services, run_id: str, task_id: str) -> list[Event]:
    """The events of a task, from whichever process; none when the store is away."""
    try:
        return [event for event in services.events.read(run_id) if event.data.get("task_id") == task_id]
    except StoreError:
        return []


def _note(services: Services, run_id: str, name: str, data: dict[str, Value]) -> None:
    try:
        services.events.append(run_id, name, data)
    except StoreError as exc:
        log.warning("event not stored", event_name=name, exception=type(exc).__name__)
