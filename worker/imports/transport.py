"""Files out of a sandbox onto this worker's disk: streamed, bounded, checked after writing."""

from collections.abc import Iterator
from pathlib import Path

from worker.failures.classify import classify
from worker.failures.model import Cancelled, Category, Failure, InvalidRequest, OperationFailed
from worker.imports.limits import MEBIBYTE, OPERATION, corrupt
from worker.sandboxes.deadline import Deadline
from worker.snapshots.digest import bundle_digest
from worker.snapshots.handed import Files

STAGE = "transport"
RESUME_ABOVE = 64 * MEBIBYTE
"""Bytes; a transfer that was cut beyond this goes on where it stopped, a shorter one starts again (design 7)."""
_CHUNK = MEBIBYTE
_REPEATABLE = frozenset({Category.TRANSIENT_NETWORK, Category.TRANSIENT_SERVER, Category.TIMEOUT_AMBIGUOUS})
"""Reading changes nothing, so a timeout is not ambiguous here."""


def fetch_file(files: Files, path: str, *, size: int, digest: str, destination: Path, deadline: Deadline) -> None:
    """Copy ``path`` to ``destination`` (made 0600, replaced), which then has ``size`` bytes and ``digest``.

    ``digest`` is that of :mod:`worker.snapshots.digest`, checked on what was written. A transfer that was cut or
    damaged is read once more. Memory: one chunk.

    :raises OperationFailed: stage ``transport``, ``size_mismatch`` or ``digest_mismatch``, after the second read.
    """
    destination.unlink(missing_ok=True)
    destination.touch(mode=0o600)
    offset = 0
    for last in (False, True):
        cut = _read(_bounded(files, path, size, offset, deadline), destination, offset)
        written = destination.stat().st_size
        wrong = _wrong(destination, size, digest)
        if wrong is None:
            return
        if last:
            raise cut or wrong
        offset = written if RESUME_ABOVE < written < size else 0


def fetch_text(files: Files, path: str, limit: int, deadline: Deadline) -> bytes:
    """Read a small file of unknown size, ``limit`` bytes at most.

    :raises OperationFailed: stage ``transport``, ``too_large``.
    """
    data = bytearray()
    for chunk in files.read(path, deadline=deadline):
        deadline.check(OPERATION, STAGE)
        data += chunk
        if len(data) > limit:
            raise corrupt(STAGE, "too_large")
    return bytes(data)


def local_chunks(path: Path) -> Iterator[bytes]:
    """The bytes of a file of this worker, a chunk at a time."""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _read(chunks: Iterator[bytes], destination: Path, offset: int) -> Exception | None:
    """Write ``chunks`` from ``offset`` on; what cut the stream, if it is worth a second look."""
    with destination.open("r+b") as file:
        file.truncate(offset)
        file.seek(offset)
        while True:
            try:
                chunk = next(chunks, None)
            except (Cancelled, InvalidRequest, OperationFailed):
                raise
            except Exception as exc:
                if not _is_transfer_fault(exc):
                    raise
                return exc
            if chunk is None:
                return None
            file.write(chunk)


def _wrong(destination: Path, size: int, digest: str) -> OperationFailed | None:
    """What is wrong with the file as it lies there."""
    if destination.stat().st_size != size:
        return corrupt(STAGE, "size_mismatch")
    return None if bundle_digest(size, local_chunks(destination)) == digest else corrupt(STAGE, "digest_mismatch")


def _bounded(files: Files, path: str, size: int, offset: int, deadline: Deadline) -> Iterator[bytes]:
    """The stream, cut one byte past ``size``: a file that still grows is as wrong as a short one."""
    left = size + 1 - offset
    for chunk in files.read(path, deadline=deadline, offset=offset):
        deadline.check(OPERATION, STAGE)
        yield chunk[:left]
        left -= len(chunk)
        if left <= 0:
            return


def _is_transfer_fault(exc: Exception) -> bool:
    """Whether a broken connection looks like this. A soft time limit does not."""
    kind = type(exc)
    facts = Failure(operation=OPERATION, stage=STAGE, exception=f"{kind.__module__}.{kind.__qualname__}")
    judged = classify(facts)
    return judged.category in _REPEATABLE and judged.reason != "soft_time_limit"
