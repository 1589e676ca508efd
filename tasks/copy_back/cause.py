"""The cause line of a copy-back. Pure."""

from worker.failures.cause import Cause
from worker.failures.model import Category, Failure, Verdict
from worker.retrying.causes import cause_of

CODE = "copy_back_failed"
CAPTURE = "capture"

_OWN_CODES = {
    "disk_full": "workspace_disk_full",
    "disk_quota": "workspace_disk_full",
    "index_lock": "workspace_operation_in_progress",
    "unfinished_operation": "workspace_operation_in_progress",
    "archive_invalid": "workspace_archive_invalid",
    "archive_unsafe": "workspace_archive_invalid",
}
"""Known conditions keep a code of their own, whatever step met them."""


def cause(failure: Failure, verdict: Verdict) -> Cause:
    """Say which step failed and why; the capture's own cause goes below it if it was valid."""
    code = _OWN_CODES.get(verdict.reason)
    if code is not None:
        return Cause.of(code, stage=failure.stage, reason=verdict.reason, exit=failure.exit_code)
    if failure.stage == CAPTURE and verdict.category not in {Category.INVALID_REQUEST, Category.CANCELLED}:
        nested = Cause.parse(failure.cause) if failure.cause else None
        return Cause.of(
            "remote_workspace_operation_failed",
            nested=nested,
            operation=CAPTURE,
            exit=failure.exit_code,
            signal=failure.signal,
        )
    return cause_of(CODE, failure, verdict)
