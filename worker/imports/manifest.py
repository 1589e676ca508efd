r"""What an artifact says of itself: enough to restore it with plain git. Pure.

Paths and names of refs out of a sandbox are bytes; in JSON they are UTF-8 with ``\xNN`` for bytes that are not.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from worker.imports.changes import Changes
from worker.imports.collect import Capture
from worker.imports.intake import Imported
from worker.snapshots.format import NO_LOSS


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the work began. ``depth`` is the clone's, ``None`` for a full one; ``created`` epoch seconds."""

    run_id: str
    url: str | None
    """The clone's URL, without a credential; ``None`` for a directory that was no clone."""
    depth: int | None
    created: int


def manifest(origin: Origin, capture: Capture, parts: Sequence[Imported], diffs: Sequence[Changes]) -> dict[str, Any]:
    """``manifest.json`` without the list of files, which the store adds."""
    losses = {kind: count for kind, count in capture.text.omitted.items() if kind not in NO_LOSS}
    unsafe = sum(part.unsafe_links for part in parts)
    return {
        "schema": 1,
        "run_id": origin.run_id,
        "created": origin.created,
        "origin": origin.url,
        "depth": origin.depth,
        "quiesce": capture.text.quiesce,
        "complete": not losses,
        "omitted": dict(capture.text.omitted),
        "ignored": capture.text.ignored,
        "unsafe_links": unsafe,
        "empty_directories": [printable(path) for path in capture.empty],
        "parts": [
            _part(part, capture.paths[place], diff) for place, (part, diff) in enumerate(zip(parts, diffs, strict=True))
        ],
    }


def stat(parts: Sequence[Imported], diffs: Sequence[Changes]) -> dict[str, Any]:
    """``stat.json``: what changed, part by part."""
    return {
        "schema": 1,
        "parts": [{"number": part.part.number, **_counts(diff)} for part, diff in zip(parts, diffs, strict=True)],
    }


def printable(text: bytes | str) -> str:
    """A path or a name as JSON can hold it, control characters and all bytes that are no UTF-8 written out."""
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    shown = data.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in shown)


def _part(imported: Imported, path: bytes, diff: Changes) -> dict[str, Any]:
    part = imported.part
    return {
        "number": part.number,
        "path": printable(path),
        "kind": part.kind,
        "object_format": part.format,
        "snapshot": part.snapshot,
        "tree": part.tree,
        "baseline": part.baseline,
        "base": part.base,
        "base_absent": part.base_absent,
        "head": part.head,
        "on_branch": part.branch,
        "state": part.state,
        "bundle": imported.bundle.name,
        "patch": diff.patch.name if diff.patch else None,
        "prerequisites": list(imported.header.prerequisites),
        "refs": {printable(name): oid for name, oid in imported.header.refs.items()},
        "objects": imported.size.objects,
        "bytes": imported.size.inflated,
        "files": imported.paths,
    }


def _counts(diff: Changes) -> dict[str, int | None]:
    return {key: value for key, value in asdict(diff).items() if key != "patch"}
