"""One part of a capture, from its bundle to a quarantine that everything was checked in."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from worker.imports.header import BASELINE, HEAD, SNAPSHOT, Header
from worker.imports.host_git import HostGit
from worker.imports.limits import Limits, corrupt, refused
from worker.imports.links import MAX_TARGET, safe_link
from worker.imports.objects import Commit, ObjectReader, reading
from worker.imports.pack import PackSize
from worker.imports.quarantine import index_pack, open_quarantine, read_bundle
from worker.imports.repository import HostRepository
from worker.imports.trees import Link, TreeWalk
from worker.sandboxes.deadline import Deadline
from worker.snapshots.format import Part

STAGE = "import"
_LISTED = "--batch-check=%(objectname) %(objecttype)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A part that passed. ``git`` is its quarantine, which borrows from ``host`` if that has the base."""

    part: Part
    header: Header
    bundle: Path
    git: HostGit
    host: HostRepository | None
    size: PackSize
    paths: int
    """Files of the snapshot as far as its trees are here."""
    unsafe_links: int
    """Links that lead out of the tree; 0 unless the limits say ``report``."""

    @property
    def whole(self) -> bool:
        """Everything that the snapshot refers to can be read here."""
        return self.host is not None or not self.header.prerequisites


def import_part(
    part: Part, bundle: Path, directory: Path, *, limits: Limits, deadline: Deadline, host: HostRepository | None = None
) -> Imported:
    """Check the bundle of ``part`` and take it into a quarantine at ``directory`` (made; must not exist).

    The refs of the quarantine exist only if this returns. ``host`` lends the base's objects if it has them.

    :raises OperationFailed: stages ``parse``, ``index``, ``import``; ``corrupt_data`` or ``policy_denied``.
    """
    header, size = read_bundle(bundle, limits, deadline)
    _check_claims(part, header)
    git = open_quarantine(directory, header.object_format, limits, deadline)
    lender = host if host is not None and host.has_base(header, limits, deadline) else None
    if lender is not None:
        git = git.borrowing(lender.objects)
    index_pack(git, bundle, header, linked=lender is not None or not header.prerequisites)
    with reading(git) as reader:
        paths, unsafe = _inspect(git, reader, part, header, base=part.base if lender else None)
        _set_refs(git, reader, header)
    if lender is not None:
        lender.check_connected(git, header)
    return Imported(
        part=part, header=header, bundle=bundle, git=git, host=lender, size=size, paths=paths, unsafe_links=unsafe
    )


def _check_claims(part: Part, header: Header) -> None:
    """What ``capture.txt`` says of a part and what the bundle says of itself must agree."""
    refs = header.refs
    if header.object_format != part.format:
        raise corrupt(STAGE, "object_format")
    if refs[SNAPSHOT] != part.snapshot or refs.get(HEAD) != part.head:
        raise corrupt(STAGE, "head_mismatch")
    if BASELINE in refs and part.baseline is None:
        raise corrupt(STAGE, "head_mismatch")


def _inspect(git: HostGit, reader: ObjectReader, part: Part, header: Header, base: str | None) -> tuple[int, int]:
    """Check commits, trees and links; the files of the snapshot, and the links that lead out."""
    commits, tags = _commits(git)
    parsed = {oid: _commit(reader, oid) for oid in commits}
    _check_refs(header, parsed, tags)
    _check_commits(reader, part, header, parsed)
    walk = TreeWalk(reader.tree, git.limits)
    for commit in parsed.values():
        walk.walk(commit.tree)
    unsafe = _unsafe_links(reader, walk.links - _links_of(reader, git.limits, base))
    if unsafe and git.limits.links == "refuse":
        raise refused(STAGE, "unsafe_link")
    return walk.walk(part.tree), unsafe


def _commits(git: HostGit) -> tuple[list[str], set[str]]:
    """The commits and the tags of the quarantine itself."""
    commits, tags, rest = [], set(), b""
    alone = git.borrowing()
    with alone.started("cat-file", "--batch-all-objects", "--unordered", _LISTED, stage=STAGE) as command:
        for chunk in command.chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                oid, _, kind = line.decode("ascii").partition(" ")
                if kind == "commit":
                    commits.append(oid)
                elif kind == "tag":
                    tags.add(oid)
        command.finish(b"")
    return commits, tags


def _commit(reader: ObjectReader, oid: str) -> Commit:
    found = reader.commit(oid)
    if found is None:
        raise corrupt(STAGE, "object_corrupt")
    return found


def _check_refs(header: Header, commits: Iterable[str], tags: set[str]) -> None:
    """Refs lead to commits that are here or that the base has; only tags may lead to a tag."""
    known = {*commits, *header.prerequisites}
    for name, oid in header.refs.items():
        if oid not in known and not (name.startswith("refs/sandferry/tags/") and oid in tags):
            raise corrupt(STAGE, "ref_missing")


def _check_commits(reader: ObjectReader, part: Part, header: Header, commits: dict[str, Commit]) -> None:
    """The history is closed, and the snapshot is what the capture says."""
    known = {*commits, *header.prerequisites}
    if any(parent not in known for commit in commits.values() for parent in commit.parents):
        raise corrupt(STAGE, "bundle_prerequisites")
    snapshot = commits.get(part.snapshot) or reader.commit(part.snapshot)
    if snapshot is None or snapshot.tree != part.tree:
        raise corrupt(STAGE, "head_mismatch")
    if part.head is not None and part.head != part.snapshot and snapshot.parents[:1] != (part.head,):
        raise corrupt(STAGE, "head_mismatch")
    baseline = commits.get(header.refs.get(BASELINE, ""))
    if baseline is not None and baseline.tree != part.baseline:
        raise corrupt(STAGE, "head_mismatch")


def _links_of(reader: ObjectReader, limits: Limits, base: str | None) -> set[Link]:
    """The links of the base, which came from the origin and not from the sandbox."""
    commit = reader.commit(base) if base else None
    walk = TreeWalk(reader.tree, limits)
    if commit is not None:
        walk.walk(commit.tree)
    return walk.links


def _unsafe_links(reader: ObjectReader, links: Iterable[Link]) -> int:
    """How many lead out. One whose target is not here is the base's own."""
    count = 0
    for oid, depth in links:
        known = reader.info(oid)
        if known is None:
            continue
        found = reader.content(oid) if known[1] <= MAX_TARGET else None
        if found is None or not safe_link(found[1], depth):
            count += 1
    return count


def _set_refs(git: HostGit, reader: ObjectReader, header: Header) -> None:
    """Give the quarantine its refs; one that leads to a base that is not here has no place."""
    here = {name: oid for name, oid in header.refs.items() if reader.info(oid) is not None}
    lines = (f"create {name}\0{oid}\0" for name, oid in here.items())
    git.ask("update-ref", "-z", "--stdin", stage=STAGE, stdin="".join(lines).encode("utf-8", "surrogateescape"))
