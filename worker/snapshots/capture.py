"""A capture: everything an agent did in a work tree, as files in the sandbox that the worker may read."""

import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from posixpath import isabs

from worker.failures.cause import Cause
from worker.failures.model import Cancelled, Category, EndedBy, Failure, InvalidRequest, OperationFailed
from worker.sandboxes.base import Completed, Layout, Sandbox
from worker.sandboxes.deadline import Deadline
from worker.snapshots.capture_script import CAPTURE, SWEEP, script
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
from worker.snapshots.paths import FormatError

CODE = "remote_workspace_capture_failed"
"""The only code a helper's cause may have."""
MAX_FILE = 100 * 1024 * 1024
"""Bytes above which a file is reported, not taken, unless the request says otherwise: GitHub's own limit."""
_CLEAN_UP = 30.0
"""Seconds for removing what a failed capture left."""
_KEY = re.compile(r"[A-Za-z0-9_-]{1,128}")
_HEX = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRequest:
    """What to capture.

    ``path`` is the workspace, an absolute path under the layout's ``workspace`` or ``repos``; a directory inside
    a repository stands for the whole repository. ``key`` names the operation: a capture clears away what earlier
    attempts with the same key left. ``store`` and ``baseline`` are those of :mod:`worker.snapshots.baseline`,
    ``base`` the commit that was cloned. ``include`` are globs of ignored files to take in, ``exclude`` of files
    to leave as they were in the baseline (both: :func:`worker.snapshots.globs.pathspecs`). ``pids`` are the
    processes to pause; none means all that are the sandbox's own.
    """

    path: str
    key: str
    base: str | None = None
    baseline: str | None = None
    store: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_file: int = MAX_FILE
    pause: bool = False
    pids: tuple[int, ...] = ()

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
    """A finished capture: ``out_dir`` holds the files that ``text`` describes, until :func:`discard`."""

    out_dir: str
    text: CaptureText


def capture(sandbox: Sandbox, request: CaptureRequest, deadline: Deadline) -> Captured:
    """Capture once. A failed capture leaves nothing behind.

    :raises OperationFailed: stage ``capture``, with the helper's own cause if it gave a valid one.
    :raises Cancelled: the run was cancelled.
    """
    deadline.check("copy_back", "capture")
    nonce = secrets.token_hex(8)
    with _nothing_left(sandbox, f"{request.key}.{nonce}"):
        done = sandbox.run(_argv(sandbox, request, nonce), deadline=deadline)
        if done.ended_by is EndedBy.CANCELLED:
            raise Cancelled
        if not done.ok or done.stdout != b"captured\n" or done.stderr:
            raise OperationFailed(_failure(sandbox, done))
        out = f"{_home(sandbox.layout)}/{request.key}.{nonce}/out"
        return Captured(out_dir=out, text=_text(sandbox, out, deadline))


def discard(sandbox: Sandbox, captured: Captured, deadline: Deadline) -> None:
    """Remove a capture whose files have been read."""
    _remove(sandbox, captured.out_dir.split("/")[-2], deadline)


def sweep(sandbox: Sandbox, key: str, deadline: Deadline) -> None:
    """Remove what dead attempts of an operation left, and wake the processes they had paused."""
    if not _KEY.fullmatch(key):
        raise InvalidRequest("key", "malformed")
    _remove(sandbox, key, deadline)


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
        str(2 * len(request.include)),
        *_patterns(request.include, "include"),
        *_patterns(request.exclude, "exclude"),
    ]


def _patterns(globs: tuple[str, ...], field_name: str) -> list[str]:
    return [pattern for glob in globs for pattern in pathspecs(glob, field_name)]


def _text(sandbox: Sandbox, out: str, deadline: Deadline) -> CaptureText:
    data = bytearray()
    for chunk in sandbox.read(f"{out}/capture.txt", deadline=deadline):
        data += chunk
        if len(data) > MAX_TEXT:
            break
    try:
        return parse_capture(bytes(data))
    except FormatError:
        raise OperationFailed(_invalid(sandbox)) from None


def _invalid(sandbox: Sandbox) -> Failure:
    return Failure(
        operation="copy_back",
        stage="capture",
        provider=sandbox.provider,
        program="helper",
        category=Category.CORRUPT_DATA,
        reason="archive_invalid",
    )


def _failure(sandbox: Sandbox, done: Completed) -> Failure:
    """The facts; what git said is private, and of the helper's stderr only a valid cause is kept."""
    if done.ok:
        return _invalid(sandbox)
    cause = nested_cause(done)
    facts = {key: str(value) for key, value in cause.fields} if cause else {}
    reason = facts.get("reason") or _SIGNALS.get(facts.get("signal", ""))
    return Failure(
        operation="copy_back",
        stage="capture",
        provider=sandbox.provider,
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
