"""Objects of a quarantine, read one by one from a single ``git cat-file``."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from worker.imports.host_git import Command, HostGit
from worker.imports.limits import MEBIBYTE, corrupt, refused

STAGE = "import"
MAX_OBJECT = 64 * MEBIBYTE
"""Bytes of a tree or commit that is read; a tree of a million entries is half of it."""

_ID = rb"[0-9a-f]{40}|[0-9a-f]{64}"
_INFO = re.compile(rb"(?:%s) (blob|tree|commit|tag) ([0-9]{1,15})" % _ID)
_TREE = re.compile(rb"tree (%s)\n" % _ID)
_PARENT = re.compile(rb"parent (%s)\n" % _ID)


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a tree. ``mode`` is octal text as git writes it today, ``40000`` for a tree: without zeros in front."""

    mode: bytes
    name: bytes
    oid: str


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit: its tree and its parents."""

    tree: str
    parents: tuple[str, ...]


class ObjectReader:
    """Answers questions about objects; ``None`` is one that is not there."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._pending = b""

    def info(self, name: str) -> tuple[str, int] | None:
        """Type and size (bytes) of an object."""
        self._command.write(b"info " + name.encode() + b"\n")
        return self._info()

    def content(self, oid: str, limit: int = MAX_OBJECT) -> tuple[str, bytes] | None:
        """Type and content of an object of at most ``limit`` bytes.

        :raises OperationFailed: ``too_large``.
        """
        known = self.info(oid)
        if known is None:
            return None
        if known[1] > limit:
            raise refused(STAGE, "too_large")
        self._command.write(b"contents " + oid.encode() + b"\n")
        kind, size = self._info() or ("", 0)
        return kind, self._take(size + 1)[:-1]

    def tree(self, oid: str) -> tuple[Entry, ...] | None:
        """The entries of a tree."""
        found = self.content(oid)
        if found is not None and found[0] != "tree":
            raise corrupt(STAGE, "object_corrupt")
        return None if found is None else tuple(parse_tree(found[1], len(oid) // 2))

    def commit(self, oid: str) -> Commit | None:
        """A commit, or the one that a tag leads to."""
        for _ in range(10):
            found = self.content(oid)
            if found is None:
                return None
            if found[0] == "commit":
                return parse_commit(found[1])
            if found[0] != "tag" or not found[1].startswith(b"object "):
                break
            oid = found[1][7:].split(b"\n", 1)[0].decode("ascii", "replace")
        raise corrupt(STAGE, "object_corrupt")

    def _info(self) -> tuple[str, int] | None:
        line = self._line()
        found = _INFO.fullmatch(line)
        if found:
            return found[1].decode(), int(found[2])
        if line.endswith(b" missing"):
            return None
        raise corrupt(STAGE, "object_corrupt")

    def _line(self) -> bytes:
        while b"\n" not in self._pending:
            self._more()
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _take(self, count: int) -> bytes:
        parts, length = [self._pending], len(self._pending)
        while length < count:
            self._pending = b""
            self._more()
            parts.append(self._pending)
            length += len(self._pending)
        whole = b"".join(parts)
        self._pending = whole[count:]
        return whole[:count]

    def _more(self) -> None:
        chunk = self._command.read()
        if not chunk:
            raise corrupt(STAGE, "object_corrupt")
        self._pending += chunk


@contextmanager
def reading(git: HostGit) -> Iterator[ObjectReader]:
    """Objects of ``git``'s repository and of those it borrows from."""
    with git.started("cat-file", "--batch-command", stage=STAGE, stdin=None) as command:
        yield ObjectReader(command)


def parse_tree(data: bytes, id_size: int) -> Iterator[Entry]:
    """Read a tree; ``id_size`` is 20 or 32 bytes."""
    at = 0
    while at < len(data):
        space = data.find(b" ", at, at + 8)
        end = data.find(b"\0", space)
        if space < 0 or end < 0 or end + 1 + id_size > len(data):
            raise corrupt(STAGE, "object_corrupt")
        at, name, mode = end + 1 + id_size, data[space + 1 : end], data[at:space]
        yield Entry(mode.lstrip(b"0"), name, data[end + 1 : at].hex())


def parse_commit(data: bytes) -> Commit:
    """Read the head of a commit."""
    tree = _TREE.match(data)
    if tree is None:
        raise corrupt(STAGE, "object_corrupt")
    parents, at = [], tree.end()
    while parent := _PARENT.match(data, at):
        parents.append(parent[1].decode())
        at = parent.end()
    return Commit(tree[1].decode(), tuple(parents))
