"""Paths inside a container, and what our scripts say of them."""

import errno
import os
from posixpath import basename, dirname, isabs

from worker.failures.model import Category, InvalidRequest
from worker.sandboxes.docker.faults import failure

_FILE_ERRORS = (errno.ENOENT, errno.EACCES, errno.EISDIR)
"""What our scripts exit with when they cannot use a file."""


def split(path: str) -> tuple[str, str]:
    """Directory and name of an absolute path.

    :raises InvalidRequest: it names no file (``path: malformed``).
    """
    if not isabs(path) or "\0" in path or basename(path) in ("", ".", ".."):
        raise InvalidRequest("path", "malformed")
    return dirname(path), basename(path)


def raise_errno(code: int, stage: str) -> None:
    """Raise what a script's exit code stands for: an ``OSError``, or ``helper_failed``; 0 stands for nothing."""
    if code in _FILE_ERRORS:
        raise OSError(code, os.strerror(code))
    if code:
        raise failure(stage, Category.UNKNOWN, "helper_failed")
