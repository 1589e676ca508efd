"""Every run event and every field: the allow-list of the event store, and the source of docs/events.md."""

from collections.abc import Mapping
from dataclasses import dataclass

FIELDS: Mapping[str, str] = {
    "adopted": "bool: what an earlier attempt had finished was taken over",
    "attempt": "int, from 1: of the task",
    "attempts": "int: how many there are at most",
    "bytes": "int: size of what was made",
    "category": "str: member of the categories in failures.md",
    "cause": "str: the cause line",
    "code": "str: its first word",
    "commit": "str: hexadecimal object name",
    "credential": "str: none, static or minted",
    "deadline_ms": "int",
    "delay_ms": "int: countdown of the retry",
    "duration_ms": "int",
    "effect": "str: read, write, mixed or undeclared",
    "exception": "str: class of an exception",
    "exit_code": "int or null",
    "http_status": "int",
    "job": "str: name of a task",
    "outcome": "str: succeeded, partial or another outcome of the job",
    "parts": "int: repositories that were captured",
    "provider": "str: driver of the sandbox",
    "reason": "str: a stable token",
    "sandbox_id": "str: the provider's id",
    "signal": "str or null: name of a signal",
    "stage": "str: step of the job",
    "task_id": "str: Celery's id of the job",
    "tool": "str: name of a tool's package",
    "ttl_s": "int",
}
"""Field -> type and meaning. Strings are of our own alphabet, at most 512 characters."""

ALWAYS = ("task_id", "attempt")
"""On every event that a body emits."""


@dataclass(frozen=True, slots=True)
class EventKind:
    """One event; ``fields`` beside :data:`ALWAYS`."""

    name: str
    says: str
    fields: tuple[str, ...] = ()


_FAILED = ("stage", "category", "reason", "effect", "exception")


def _job(prefix: str, what: str) -> tuple[EventKind, ...]:
    return (
        EventKind(f"{prefix}.retrying", f"An attempt {what} failed and another will follow.", (*_FAILED, "delay_ms")),
        EventKind(f"{prefix}.failed", f"The last attempt {what} failed.", (*_FAILED, "code", "cause")),
    )


_TOOL = ("tool", "effect")
EVENTS: tuple[EventKind, ...] = (
    EventKind("sandbox.initializing", "A job asks a provider for its sandbox.", ("provider",)),
    EventKind("sandbox.ready", "The job has its sandbox.", ("provider", "sandbox_id")),
    EventKind("sandbox.failed", "The provider gave none.", ("provider", "exception")),
    EventKind("sandbox.released", "A sandbox was ended; `reason=reaped`: by the sweep.",
              ("provider", "sandbox_id", "reason")),
    EventKind("sandbox.git.started", "git starts to clone.", ("provider", "credential")),
    EventKind("sandbox.git.completed", "The checkout is in its place.", ("provider", "credential", "bytes", "adopted")),
    *_job("sandbox.git", "to clone"),
    EventKind("workspace.copy_back.started", "The capture starts.", ("provider",)),
    EventKind("workspace.copy_back.captured", "The work is on the worker.", ("parts",)),
    EventKind("workspace.copy_back.completed", "The artifact is kept, and delivered where asked.",
              ("outcome", "bytes")),
    *_job("workspace.copy_back", "to copy back"),
    EventKind("tool.dispatch.started", "A call is looked up in the ledger.", _TOOL),
    EventKind("tool.dispatch.sent", "The tool may run from now on.", _TOOL),
    EventKind("tool.dispatch.waiting", "The tool was started before; its receipt is awaited.", _TOOL),
    EventKind("tool.dispatch.adopted", "The receipt of a tool that ran before was found.", _TOOL),
    EventKind("tool.dispatch.completed", "The tool has run.",
              ("tool", "outcome", "exit_code", "adopted", "bytes", "duration_ms")),
    *_job("tool.dispatch", "to run a tool"),
    EventKind("worker.lost", "A body died with its process; it runs again, or its job ends as `worker_lost`.",
              ("signal", "exit_code")),
)  # fmt: skip
"""In the order of a run."""
