"""A whole capture, from the sandbox's ``out`` directory to this worker's disk."""

from dataclasses import dataclass
from pathlib import Path

from worker.imports.limits import Limits, corrupt, refused
from worker.imports.transport import fetch_file, fetch_text
from worker.sandboxes.deadline import Deadline
from worker.snapshots.format import (
    MAX_LIST,
    MAX_PATH_FILE,
    MAX_TEXT,
    CaptureText,
    parse_capture,
    parse_empty,
    parse_omitted,
    parse_path,
)
from worker.snapshots.handed import Files
from worker.snapshots.paths import FormatError

STAGE = "parse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """What a capture left. ``paths`` and ``bundles`` go by the number of the part."""

    text: CaptureText
    paths: tuple[bytes, ...]
    bundles: tuple[Path, ...]
    empty: tuple[bytes, ...]
    omitted: tuple[tuple[str, bytes], ...]


def fetch_capture(
    files: Files,
    out: str,
    destination: Path,
    *,
    limits: Limits,
    deadline: Deadline,
    text: CaptureText | None = None,
) -> Capture:
    """Fetch the files of ``out`` (a directory where ``files`` are) into the private directory ``destination``.

    ``text`` is ``capture.txt`` if it was read already. Then what it says is empty is not asked for: each file costs
    a command in the sandbox.

    :raises OperationFailed: stage ``transport``, or ``parse`` for what is not as agreed (``malformed``).
    """
    try:
        return _fetch(files, out, destination, limits=limits, deadline=deadline, known=text)
    except FormatError:
        raise corrupt(STAGE, "malformed") from None


def _fetch(
    files: Files, out: str, destination: Path, *, limits: Limits, deadline: Deadline, known: CaptureText | None
) -> Capture:
    def read(name: str, limit: int, entries: int = 1) -> bytes:
        if known is not None and not entries:
            return b""
        return fetch_text(files, f"{out}/{name}", limit, deadline)

    text = known or parse_capture(read("capture.txt", MAX_TEXT))
    if sum(part.size for part in text.parts) > limits.bundle:
        raise refused(STAGE, "too_large")
    paths = tuple(
        parse_path(read(f"part-{part.number}.path", MAX_PATH_FILE, part.number), part.number) for part in text.parts
    )
    empty = parse_empty(read("empty.z", MAX_LIST, text.empty), text.empty)
    omitted = parse_omitted(read("omitted.z", MAX_LIST, sum(text.omitted.values())), text.omitted)
    bundles = tuple(destination / f"part-{part.number}.bundle" for part in text.parts)
    for part, bundle in zip(text.parts, bundles, strict=True):
        source = f"{out}/part-{part.number}.bundle"
        fetch_file(files, source, size=part.size, digest=part.digest, destination=bundle, deadline=deadline)
    return Capture(text=text, paths=paths, bundles=bundles, empty=empty, omitted=omitted)
