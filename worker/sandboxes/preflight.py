"""What a sandbox must bring along, checked before work begins."""

import re

from worker.failures.model import Category, Failure, OperationFailed
from worker.sandboxes.base import Completed, Sandbox
from worker.sandboxes.deadline import Deadline

MINIMUM_GIT = (2, 37)
"""The oldest git that capture works with."""
_VERSION = re.compile(rb"git version (\d{1,4})\.(\d{1,4})")


def require_git(sandbox: Sandbox, deadline: Deadline, minimum: tuple[int, int] = MINIMUM_GIT) -> tuple[int, int]:
    """The sandbox's git version as ``(major, minor)``.

    :raises OperationFailed: there is none (``git_missing``), or it is too old (``git_too_old``).
    """
    completed = sandbox.run(["git", "--version"], deadline=deadline, output_limit=4096)
    found = _VERSION.match(completed.stdout) if completed.ok else None
    if found is None:
        if completed.ended_by is not completed.ended_by.ITSELF:
            raise _failed(sandbox, completed, None, None)
        raise _failed(sandbox, completed, Category.INVALID_REQUEST, "git_missing")
    version = int(found[1]), int(found[2])
    if version < minimum:
        raise _failed(sandbox, completed, Category.INVALID_REQUEST, "git_too_old")
    return version


def _failed(sandbox: Sandbox, completed: Completed, category: Category | None, reason: str | None) -> OperationFailed:
    return OperationFailed(
        Failure(
            operation="sandbox",
            stage="preflight",
            provider=sandbox.provider,
            program="git",
            exit_code=completed.exit_code,
            signal=completed.signal,
            ended_by=completed.ended_by,
            category=category,
            reason=reason,
        )
    )
