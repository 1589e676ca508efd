"""The rules for trees that git's fsck does not have. Pure but for the reader it is given.

A tree is looked at once for each depth it occurs at, and its files are counted from the counts of its subtrees:
eleven trees that hold 10^8 paths cost eleven looks.
"""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from worker.imports.limits import Limits, refused
from worker.imports.objects import Entry

STAGE = "import"
MAX_NAME = 255
"""Bytes of a name: Linux's NAME_MAX."""
MAX_PATH = 4096
"""Bytes of a path: Linux's PATH_MAX."""
_LOOKS = 4
"""Entries that may be looked at, as a multiple of the paths that may be there."""
_TREE, _LINK, _GITLINK = b"40000", b"120000", b"160000"

Link = tuple[str, int]
"""The blob of a symbolic link, and how many directories it is below the root."""
TreeOf = Callable[[str], Sequence[Entry] | None]
"""The entries of a tree; ``None`` for one that is not here, because the base has it."""


@dataclass(frozen=True, slots=True)
class _Seen:
    paths: int
    longest: int


@dataclass(slots=True)
class TreeWalk:
    """Walks trees, refuses what must not be there, and collects symbolic links."""

    tree_of: TreeOf
    limits: Limits
    links: set[Link] = field(default_factory=set)
    _seen: dict[Link, _Seen] = field(default_factory=dict)
    _looks: int = 0

    def walk(self, root: str) -> int:
        """Check the tree ``root``; how many files it holds, those of absent subtrees not counted.

        :raises OperationFailed: stage ``import``, ``too_many_paths`` or ``unsafe_tree``.
        """
        return self._walk(root, 0).paths

    def _walk(self, oid: str, depth: int) -> _Seen:
        known = self._seen.get((oid, depth))
        if known is None:
            if depth > self.limits.depth:
                raise refused(STAGE, "unsafe_tree")
            known = self._look(self.tree_of(oid) or (), depth)
            self._seen[oid, depth] = known
        return known

    def _look(self, entries: Sequence[Entry], depth: int) -> _Seen:
        self._looks += len(entries) + 1
        _check_names(entries)
        paths = longest = 0
        for entry in entries:
            below = _Seen(1, 0)
            if entry.mode == _TREE:
                below = self._walk(entry.oid, depth + 1)
            elif entry.mode == _LINK:
                self.links.add((entry.oid, depth))
            paths += below.paths
            longest = max(longest, len(entry.name) + 1 + below.longest)
        if paths > self.limits.paths or self._looks > _LOOKS * self.limits.paths:
            raise refused(STAGE, "too_many_paths")
        if longest > MAX_PATH:
            raise refused(STAGE, "unsafe_tree")
        return _Seen(paths, longest)


def _check_names(entries: Sequence[Entry]) -> None:
    """Names that are too long, and links that another name is taken for where case does not count.

    Two files whose names differ in case are what Linux allows; with a link among them, what is written to one
    lands where the other leads (CVE-2021-21300).
    """
    if any(len(entry.name) > MAX_NAME for entry in entries):
        raise refused(STAGE, "unsafe_tree")
    links = {_folded(entry.name) for entry in entries if entry.mode in {_LINK, _GITLINK}}
    if links and sum(_folded(entry.name) in links for entry in entries) > len(links):
        raise refused(STAGE, "unsafe_tree")


def _folded(name: bytes) -> str:
    return unicodedata.normalize("NFC", name.decode("utf-8", "surrogateescape")).casefold()
