"""What a copy-back answers. Pure."""

from typing import Any, Literal

from tasks.copy_back.steps import Brought, losses
from worker.imports.manifest import printable


def outcome(brought: Brought) -> Literal["succeeded", "partial"]:
    """``succeeded``, or ``partial`` when something was lost, left out or not merged."""
    unmerged = brought.moved is not None and brought.moved.state in {"conflict", "checked_out", "name_taken"}
    left_out = brought.delivered is not None and bool(brought.delivered.left_out)
    return "partial" if losses(brought.capture) or unmerged or left_out else "succeeded"


def result(operation_id: str, brought: Brought) -> dict[str, Any]:
    """Build the JSON result; file names and refs of branches stay in the artifact and the record."""
    first = brought.parts[0].part
    return {
        "operation_id": operation_id,
        "outcome": outcome(brought),
        "artifact": str(brought.artifact),
        "snapshot": first.snapshot,
        "base": "absent" if first.base_absent else first.base,
        "files": _files(brought),
        "omitted": dict(brought.capture.text.omitted),
        "parts": len(brought.parts),
        "refs": sum(len(part.header.refs) for part in brought.parts),
        "merged": None if brought.moved is None else {"state": brought.moved.state, "commit": brought.moved.new},
        "bytes": brought.artifact.size,
    }


def _files(brought: Brought) -> dict[str, int | None]:
    """Counts over all parts; ``None`` where the old side is not known."""
    names = ("added", "modified", "deleted")
    counts = {name: [getattr(diff, name) for diff in brought.diffs] for name in names}
    return {name: None if None in found else sum(found) for name, found in counts.items()}


def conflicts(brought: Brought) -> dict[str, Any]:
    """What only operators see: the paths on which a merge failed, and those that were not taken."""
    conflicting = brought.moved.conflicts if brought.moved is not None else ()
    return {
        "conflicts": [printable(path) for path in conflicting],
        "omitted": [[kind, printable(path)] for kind, path in brought.capture.omitted],
    }
