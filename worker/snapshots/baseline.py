"""The tree of a work tree right after its clone: what later snapshots are compared with."""

import re

from worker.failures.model import Category, Failure, OperationFailed
from worker.sandboxes.base import Completed, Sandbox
from worker.sandboxes.deadline import Deadline
from worker.snapshots.scripts import BASELINE
from worker.snapshots.scripts import script as script_of

_TREE = re.compile(rb"(?:partial yes\n)?tree ([0-9a-f]{40}|[0-9a-f]{64})\n")


def script() -> str:
    """POSIX shell that takes a baseline.

    Its arguments: the work tree, the git directory to make (it must not exist), optionally ``fresh`` for a
    checkout that only git has touched, and where the repository's objects will lie later. It prints
    ``tree <id>``, after ``partial yes`` if some file could not be read. The git directory keeps the tree as
    ``refs/sandferry/baseline``.
    """
    return script_of(*BASELINE)


def baseline(sandbox: Sandbox, worktree: str, store: str, deadline: Deadline, *, operation: str = "clone") -> str:
    """Take the baseline of ``worktree`` into ``store``, a path under the sandbox's scratch; the tree's id.

    :raises OperationFailed: stage ``baseline``.
    """
    argv = ["sh", "-c", script(), "sandferry-baseline", worktree, store]
    done = sandbox.run(argv, deadline=deadline)
    match = _TREE.fullmatch(done.stdout)
    if done.ok and match:
        return match[1].decode()
    raise OperationFailed(_failure(sandbox, done, operation))


def _failure(sandbox: Sandbox, done: Completed, operation: str) -> Failure:
    return Failure(
        operation=operation,
        stage="baseline",
        provider=sandbox.provider,
        program="git",
        exit_code=done.exit_code,
        signal=done.signal,
        ended_by=done.ended_by,
        category=Category.CORRUPT_DATA if done.ok else None,
        reason="malformed_answer" if done.ok else None,
        text=done.stderr.decode(errors="replace"),
    )
