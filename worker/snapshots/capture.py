"""A capture: everything an agent did in a work tree, as files in the sandbox that the worker may read."""

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from posixpath import isabs

from worker.failures.model import Cancelled, EndedBy, InvalidRequest, OperationFailed
from worker.sandboxes.base import Layout, Sandbox
from worker.sandboxes.deadline import Deadline
from worker.snapshots.capture_failure import capture_failure, invalid_capture
from worker.snapshots.format import (
    MAX_EMPTY,
    MAX_OMITTED,
    MAX_PARTS,
    MAX_TEXT,
    OMITTED,
    CaptureText,
    parse_capture,
)
from worker.snapshots.globs import MAX_GLOBS, pathspecs
from worker.snapshots.handed import MAX_HANDED, MAX_LINES, Files, HandedOver, parse_handed
from worker.snapshots.paths import FormatError
from worker.snapshots.scripts import CAPTURE, SWEEP, script

MAX_FILE = 100 * 1024 * 1024
"""Bytes above which a file is reported, not taken, unless the request says otherwise: GitHub's own limit."""
_CLEAN_UP = 30.0
"""Seconds for removing what a failed capture left."""
_CAPTURED = b"captured\n"
"""What the helper prints when it is done, before ``capture.txt``."""
_END = b"\nend\n"
"""How that ends; after it come the files that are handed over."""
_KEY = re.compile(r"[A-Za-z0-9_-]{1,128}")
_HEX = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRequest:
    """What to capture.

    ``path`` is the workspace, an absolute path under the layout's ``workspace`` or ``repos``; a directory inside a
    repository stands for the whole repository. ``key`` names the operation: a capture clears away what earlier
    attempts with the same key left. ``store`` and ``baseline`` are those of :mod:`worker.snapshots.baseline`;
    without a store, that of the clone which took the baseline is looked for. ``base`` is the commit that was
    cloned. ``include`` are globs of ignored files to take in, ``exclude`` of files to leave as they were in the
    baseline (both: :func:`worker.snapshots.globs.pathspecs`). ``leave_links``: links that lead out of the work tree
    are left as they were, and named; otherwise they are taken. ``pids`` are the processes to pause; none means all
    that are the sandbox's own. ``when`` (epoch seconds) is the time of our commits: with the same one, an attempt
    that was cut short and its successor make the same snapshot of the same files. Without it they are of the
    moment.
    """

    path: str
    key: str
    base: str | None = None
    baseline: str | None = None
    store: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_file: int = MAX_FILE
    leave_links: bool = True
    pause: bool = False
    pids: tuple[int, ...] = ()
    when: int | None = None

    def __post_init__(self) -> None:
        if not _KEY.fullmatch(self.key):
            raise InvalidRequest("key", "malformed")
        if not isabs(self.path) or set(self.path) & {"\0", "\n"}:
            raise InvalidRequest("path", "malformed")
        for name, value in (("base", self.base), ("baseline", self.baseline)):
            if value is not None and not _HEX.fullmatch(value):
                raise InvalidRequest(name, "malformed")
        if self.max_file < 1:
            raise InvalidRequest("max_file", "too_small")
        if len(self.include) + len(self.exclude) > MAX_GLOBS:
            raise InvalidRequest("exclude", "too_long")
        _patterns(self.include, "include")
        _patterns(self.exclude, "exclude")


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """A finished capture: ``out_dir`` holds the files that ``text`` describes, until :func:`discard`.

    ``files`` is where to read them: some have come already.
    """

    out_dir: str
    text: CaptureText
    files: Files = field(repr=False)


def capture(sandbox: Sandbox, request: CaptureRequest, deadline: Deadline) -> Captured:
    """Capture once. A failed capture leaves nothing behind.

    :raises OperationFailed: stage ``capture``, with the helper's own cause if it gave a valid one.
    :raises Cancelled: the run was cancelled.
    """
    deadline.check("copy_back", "capture")
    nonce = secrets.token_hex(8)
    with _nothing_left(sandbox, f"{request.key}.{nonce}"):
        limit = len(_CAPTURED) + MAX_TEXT + MAX_LINES + MAX_HANDED
        done = sandbox.run(_argv(sandbox, request, nonce), deadline=deadline, output_limit=limit)
        if done.ended_by is EndedBy.CANCELLED:
            raise Cancelled
        if not done.ok or not done.stdout.startswith(_CAPTURED) or done.stderr:
            raise OperationFailed(capture_failure(sandbox.provider, done))
        out = f"{_home(sandbox.layout)}/{request.key}.{nonce}/out"
        said, end, rest = done.stdout.removeprefix(_CAPTURED).partition(_END)
        return Captured(out_dir=out, text=_text(sandbox, said + end), files=HandedOver(sandbox, out, _handed(rest)))


def discard(sandbox: Sandbox, captured: Captured, deadline: Deadline) -> None:
    """Remove a capture whose files have been read."""
    _remove(sandbox, captured.out_dir.split("/")[-2], deadline)


def sweep(sandbox: Sandbox, key: str, deadline: Deadline) -> None:
    """Remove what dead attempts of an operation left, and wake the processes they had paused."""
    if not _KEY.fullmatch(key):
        raise InvalidRequest("key", "malformed")
    _remove(sandbox, key, deadline)


def _home(layout: Layout) -> str:
    return f"{layout.scratch}/copy_back"


def _argv(sandbox: Sandbox, request: CaptureRequest, nonce: str) -> list[str]:
    """The arguments that ``main.sh`` documents."""
    layout = sandbox.layout
    return [
        *("sh", "-c", script(*CAPTURE), "sandferry-capture"),
        *(request.path, layout.workspace, layout.repos, _home(layout), request.key, nonce),
        *(request.store or "", request.baseline or "", request.base or "", " ".join(OMITTED)),
        *map(str, (request.max_file, MAX_PARTS, MAX_EMPTY, MAX_OMITTED)),
        "pause" if request.pause else "none",
        # Outside a container "all of this user" would be the worker and everything else it shares a login with.
        "home" if sandbox.provider == "local" else "user",
        " ".join(map(str, request.pids)),
        "" if request.when is None else str(request.when),
        str(MAX_HANDED),
        "leave" if request.leave_links else "take",
        str(2 * len(request.include)),
        *_patterns(request.include, "include"),
        *_patterns(request.exclude, "exclude"),
    ]


def _patterns(globs: tuple[str, ...], field_name: str) -> list[str]:
    return [pattern for glob in globs for pattern in pathspecs(glob, field_name)]


def _text(sandbox: Sandbox, said: bytes) -> CaptureText:
    try:
        return parse_capture(said)
    except FormatError:
        raise OperationFailed(invalid_capture(sandbox.provider)) from None


def _handed(data: bytes) -> dict[str, bytes]:
    """What was handed over; nothing if it came damaged, for the files are still there."""
    try:
        return parse_handed(data)
    except FormatError:
        return {}


@contextmanager
def _nothing_left(sandbox: Sandbox, name: str) -> Iterator[None]:
    """Remove the directory ``name`` if the body fails; a helper that was killed could not, nor wake anybody."""
    try:
        yield
    except BaseException:
        # Whatever stands in the way, the failure itself is what matters; the next attempt's helper sweeps too.
        with suppress(Exception):
            _remove(sandbox, name, Deadline.after(_CLEAN_UP))
        raise


def _remove(sandbox: Sandbox, name: str, deadline: Deadline) -> None:
    argv = ["sh", "-c", script(*SWEEP), "sandferry-sweep", _home(sandbox.layout), name]
    sandbox.run(argv, deadline=deadline)
