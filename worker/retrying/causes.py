"""The cause line of a failed attempt. Pure."""

from worker.failures.cause import Cause
from worker.failures.model import Category, Failure, OperationFailed, Verdict

WORKER_LOST = "worker_lost"
QUEUE_WAIT = "queue_wait"
HARD_TIMEOUT = "hard_timeout"
EXPIRED = "expired"
REVOKED = "cancelled"

_OWN_CODE = frozenset({WORKER_LOST, QUEUE_WAIT})
"""Reasons that have nothing to do with the job, and so a code of their own."""


def not_started(operation: str, reason: str) -> OperationFailed:
    """A task that is given up before its body starts."""
    return OperationFailed(
        Failure(operation=operation, stage="begin", category=Category.RESOURCE_EXHAUSTED, reason=reason)
    )


def cause_of(code: str, failure: Failure, verdict: Verdict) -> Cause:
    """Say why, in words of the vocabulary only; ``code`` is the job's own."""
    if failure.category is Category.INVALID_REQUEST and failure.field_name is not None:
        return Cause.of("invalid_request", field=failure.field_name, reason=failure.reason)
    if failure.category is Category.CANCELLED:
        return Cause.of("cancelled", stage=failure.stage)
    if failure.reason in _OWN_CODE:
        return Cause.of(failure.reason, stage=failure.stage)
    return Cause.of(
        code,
        stage=failure.stage,
        category=str(verdict.category),
        reason=verdict.reason,
        exit=failure.exit_code,
        signal=failure.signal,
        errno=failure.errno,
        program=failure.program,
        http=failure.http_status,
        exception=failure.exception,
    )
