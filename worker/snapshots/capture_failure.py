"""A helper that failed: the one line it may say, and the facts. Pure."""

from collections.abc import Mapping

from worker.failures.cause import Cause
from worker.failures.model import Category, EndedBy, Failure
from worker.sandboxes.base import Completed

CODE = "remote_workspace_capture_failed"
"""The only code a helper's cause may have."""
_SIGNALS: Mapping[str, str] = {"SIGKILL": "killed", "SIGXCPU": "process_limit", "SIGXFSZ": "process_limit"}
"""Reasons of signals that ended git: the kernel's OOM killer most often, or setrlimit(2)."""
_CATEGORIES: Mapping[str, Category] = {
    "disk_full": Category.RESOURCE_EXHAUSTED,
    "disk_quota": Category.RESOURCE_EXHAUSTED,
    "out_of_memory": Category.RESOURCE_EXHAUSTED,
    "process_limit": Category.RESOURCE_EXHAUSTED,
    "killed": Category.RESOURCE_EXHAUSTED,
    "files_changing": Category.OPERATION_IN_PROGRESS,
    "read_only": Category.INVALID_REQUEST,
    "file_denied": Category.INVALID_REQUEST,
    "path_invalid": Category.INVALID_REQUEST,
    "program_missing": Category.INVALID_REQUEST,
    "git_too_old": Category.INVALID_REQUEST,
    "promisor_object": Category.CORRUPT_DATA,
    "object_corrupt": Category.CORRUPT_DATA,
    "malformed_answer": Category.CORRUPT_DATA,
}
"""What the helper's reasons mean; without one, the classifier judges."""


def nested_cause(done: Completed) -> Cause | None:
    """The cause that the helper wrote: its whole stderr, one valid line with its own code, or nothing at all."""
    try:
        line = done.stderr.decode("ascii")
    except UnicodeDecodeError:
        return None
    if not line.endswith("\n"):
        return None
    cause = Cause.parse(line[:-1])
    return cause if cause is not None and cause.code == CODE and cause.nested is None else None


def invalid_capture(provider: str) -> Failure:
    """What the helper answered is no capture."""
    return Failure(
        operation="copy_back",
        stage="capture",
        provider=provider,
        program="helper",
        category=Category.CORRUPT_DATA,
        reason="archive_invalid",
    )


def capture_failure(provider: str, done: Completed) -> Failure:
    """The facts; what git said is private, and of the helper's stderr only a valid cause is kept."""
    if done.ok:
        return invalid_capture(provider)
    cause = nested_cause(done) if done.ended_by is EndedBy.ITSELF else None
    facts = {key: str(value) for key, value in cause.fields} if cause else {}
    reason = facts.get("reason") or _SIGNALS.get(facts.get("signal", ""))
    return Failure(
        operation="copy_back",
        stage="capture",
        provider=provider,
        program=facts.get("program", "helper"),
        exit_code=done.exit_code,
        signal=done.signal,
        ended_by=done.ended_by,
        errno=facts.get("code"),
        category=_CATEGORIES.get(reason or ""),
        reason=reason,
        cause=None if cause is None else str(cause),
        idempotent=True,
        text=done.stdout.decode(errors="replace"),
    )
