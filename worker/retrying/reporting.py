"""What an outcome leaves for operators: a count, and a Sentry event if it is final."""

import re
from dataclasses import asdict, dataclass
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

UNKNOWN = "none"
"""Stage and provider of an end that no body saw."""

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
    _final(services, task, task_id, payload, stage=UNKNOWN, provider=UNKNOWN)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the main process knows of a body that a child runs: the keys of its log lines."""

    task: str
    task_id: str
    run_id: str
    attempt: int


def timed_out(services: Services, body: Delivery, event: str | None, payload: dict[str, Any], limit: float) -> None:
    """Report a body that the pool killed at its hard time limit (seconds); ``event`` is the prefix of its job's."""
    log.error("hard time limit", **asdict(body), timeout_s=limit)
    if event is not None:
        _note(services, body, f"{event}.failed", {key: payload[key] for key in ("category", "code", "cause")})
    report_closed(services, body.task, body.task_id, payload)


def died(services: Services, body: Delivery, exc: BaseException) -> None:
    """Note a body that died with its process; it runs again, or ends as ``worker_lost``."""
    ending = _ending(exc)
    log.error("worker lost", **asdict(body), **ending)
    metrics.ended(body.task, "none", "lost", "none")
    _note(services, body, "worker.lost", ending)


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


def _note(services: Services, body: Delivery, name: str, data: dict[str, Value]) -> None:
    keys: dict[str, Value] = {"task_id": body.task_id, "attempt": body.attempt}
    try:
        services.events.append(body.run_id, name, {**keys, **data})
    except StoreError as exc:
        log.warning("event not stored", event_name=name, exception=type(exc).__name__)
