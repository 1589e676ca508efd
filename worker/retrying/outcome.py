"""What a client is told of a verdict: the payload of `TaskFailed`. Pure."""

from typing import Any

from worker.failures.cause import Cause
from worker.failures.model import Category, Verdict
from worker.retrying.failed import SCHEMA


def payload(
    cause: Cause, verdict: Verdict, *, attempt: int, attempts: int, run_id: str, now: float, remaining: float
) -> dict[str, Any]:
    """Build the JSON dict; ``now`` in epoch seconds, ``remaining`` seconds of the deadline."""
    return {
        "schema": SCHEMA,
        "code": cause.code,
        "category": str(verdict.category),
        "cause": str(cause),
        "attempt": attempt,
        "attempts": attempts,
        "retryable": verdict.retry or verdict.exhausted,
        "exhausted": verdict.exhausted,
        "next_eta": round(now + verdict.countdown, 3) if verdict.retry and verdict.countdown is not None else None,
        "deadline_at": round(now + remaining, 3),
        "run_id": run_id,
    }


def closed(cause: Cause, category: Category, *, run_id: str) -> dict[str, Any]:
    """Build the payload of a task that was closed from outside its body."""
    return {
        "schema": SCHEMA,
        "code": cause.code,
        "category": str(category),
        "cause": str(cause),
        "attempt": None,
        "attempts": None,
        "retryable": False,
        "exhausted": False,
        "next_eta": None,
        "deadline_at": None,
        "run_id": run_id,
    }
