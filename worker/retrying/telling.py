"""What a failed attempt leaves for people: an event of its run, and a tail for the operator."""

from worker.failures.cause import Cause
from worker.failures.model import Failure, Verdict
from worker.retrying.attempt import Attempt
from worker.secrets.redaction import Redactor, tail
from worker.stores.diagnostics import DiagnosticsStore

_SHOWN = frozenset({"effect", "exception"})
"""Fields of a cause that an event shows by themselves; their words are the vocabulary's."""


def tell(attempt: Attempt, prefix: str | None, *, verdict: Verdict, cause: Cause, failure: Failure) -> None:
    """Emit ``<prefix>.retrying`` or ``<prefix>.failed``; a job without a prefix says nothing."""
    if prefix is None:
        return
    shown = {key: value for key, value in cause.fields if key in _SHOWN}
    data = {"stage": failure.stage, "category": str(verdict.category), "reason": verdict.reason, **shown}
    if verdict.retry and verdict.countdown is not None:
        attempt.emit(f"{prefix}.retrying", **data, delay_ms=round(verdict.countdown * 1000))
    else:
        attempt.emit(f"{prefix}.failed", **data, code=cause.code, cause=str(cause))


def keep_tail(store: DiagnosticsStore, attempt: Attempt, failure: Failure) -> None:
    """Keep the redacted end of what a command said, if it said anything."""
    if failure.text:
        store.keep(attempt.task_id, attempt.number, tail(failure.text, Redactor(attempt.secrets)))
