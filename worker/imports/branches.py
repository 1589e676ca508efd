"""A branch of a host repository takes the work of a run in, by compare-and-swap.

What is merged is the change from the baseline to the snapshot, or, when this run was merged into the branch
before, from the snapshot that was merged then: a second copy-back builds on the first. A conflict changes
nothing. A branch that somebody has checked out is not moved under their feet. A branch that is another's name
(a symbolic ref) is the other one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from worker.failures.model import Category, InvalidRequest
from worker.imports.changes import old_tree
from worker.imports.delivery import PAUSE, TRIES, run_refs, update_refs
from worker.imports.host_git import HostGit
from worker.imports.intake import Imported
from worker.imports.merge import commit_tree, merge_trees
from worker.imports.refnames import valid_ref
from worker.imports.repository import HostRepository

STAGE = "deliver"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What became of a branch: ``created``, ``merged``, ``unchanged``, ``conflict``, ``checked_out`` or ``name_taken``.

    ``name_taken``: beside the branches that are there git can have none of this name (``a`` and ``a/b``).
    ``conflicts`` are paths, for the record only. ``old`` is ``None`` for a branch that was not there.
    """

    state: str
    old: str | None
    new: str | None
    conflicts: tuple[bytes, ...] = ()


def move_branch(host: HostRepository, imported: Imported, run_id: str, branch: str) -> Moved:
    """Merge part 0 of a run, whose refs :func:`deliver_refs` has delivered, into ``branch`` of ``host``.

    :raises InvalidRequest: no branch can have this name.
    :raises OperationFailed: stage ``deliver`` or ``merge``; ``ref_moved`` when others kept winning.
    """
    ref = f"refs/heads/{branch}"
    # What was merged last. Not the branch's name itself: a run may go into `a` first and into `a/b` later.
    mark = f"{run_refs(run_id)}merged/{branch}/@"
    if branch.startswith("-") or not valid_ref(ref.encode("utf-8", "surrogateescape")):
        raise InvalidRequest("branch", "malformed")
    git = host.git(imported.git.limits, imported.git.deadline)
    for attempt in range(TRIES):
        known = _refs(git, ref, mark)
        target, meant = known.get(ref, (None, ref))
        marked, _ = known.get(mark, (None, mark))
        if meant in _checked_out(git):
            return Moved(state="checked_out", old=target, new=None)
        if target is None and _name_taken(git, ref):
            return Moved(state="name_taken", old=None, new=None)
        outcome = _merge(git, imported, run_id, target=target, marked=marked)
        if outcome.state == "conflict":
            return outcome
        new = outcome.new or imported.part.snapshot
        zero = "0" * len(new)
        lines = [
            f"update {meant}\0{new}\0{outcome.old or zero}\0",
            f"update {mark}\0{imported.part.snapshot}\0{marked or zero}\0",
        ]
        if update_refs(git, lines):
            return outcome
        git.deadline.wait(PAUSE * (attempt + 1))
    raise git.failure(STAGE, category=Category.OPERATION_IN_PROGRESS, reason="ref_moved")


def _merge(git: HostGit, imported: Imported, run_id: str, *, target: str | None, marked: str | None) -> Moved:
    """What the branch ``target`` would become, with all its objects in the host; it had ``marked`` before."""
    work = imported.git.borrowing(git.git_dir / "objects")
    tip = _tip(imported)
    if target is None:
        new = _first(work, imported, tip, run_id)
        if new != tip:
            _give_new(work, git, new, (tip,))
        return Moved(state="created", old=None, new=new)
    base = f"{marked}^{{tree}}" if marked else _base(work, imported, target)
    merged = merge_trees(work, base=base, ours=f"{target}^{{tree}}", theirs=imported.part.tree)
    if merged.tree is None:
        return Moved(state="conflict", old=target, new=None, conflicts=merged.conflicts)
    new = _successor(work, imported, target=target, tip=tip, tree=merged.tree, run_id=run_id)
    if new not in {target, tip}:
        _give_new(work, git, new, (target, tip))
    return Moved(state="unchanged" if new == target else "merged", old=target, new=new)


def _first(work: HostGit, imported: Imported, tip: str, run_id: str) -> str:
    """The commit that a new branch begins with: the work, without what the checkout itself had made different."""
    part = imported.part
    if part.base is None or part.baseline is None or _tree(work, part.base) in {None, part.baseline}:
        return tip
    merged = merge_trees(work, base=part.baseline, ours=f"{part.base}^{{tree}}", theirs=part.tree)
    if merged.tree is None:
        return tip
    if part.head is not None and _tree(work, part.head) == merged.tree:
        return part.head
    return commit_tree(work, merged.tree, (part.head,) if part.head else (), _message(run_id))


def _successor(work: HostGit, imported: Imported, *, target: str, tip: str, tree: str, run_id: str) -> str:
    """The commit that the branch goes to.

    Nothing to add: the branch itself. The work as it is, on top of the branch: the work itself. Work that was
    not committed, on top of what the branch has: one commit. Else a merge.
    """
    if tree == _tree(work, target) and (tip == target or _contains(work, target, imported.part.head)):
        return target
    if tree == _tree(work, tip) and _contains(work, tip, target):
        return tip
    uncommitted = tip != imported.part.head
    plain = uncommitted and _contains(work, target, imported.part.head)
    return commit_tree(work, tree, (target,) if plain else (target, tip), _message(run_id))


def _message(run_id: str) -> str:
    return f"Work of run {run_id}\n\nSandferry-Run: {run_id}\n"


def _tip(imported: Imported) -> str:
    """The agent's own last commit if it holds all the work, else the snapshot."""
    part = imported.part
    if part.head is None or _tree(imported.git, part.head) != part.tree:
        return part.snapshot
    return part.head


def _base(work: HostGit, imported: Imported, target: str) -> str:
    """The tree that both sides come from, the empty one if nobody knows of any."""
    part = imported.part
    if part.baseline is None and part.base is None and part.head is not None:
        found = work.run("merge-base", target, part.head, stage="merge")
        if found.exit_code == 0:
            return f"{found.stdout.decode('ascii').split()[0]}^{{tree}}"
    return old_tree(imported)


def _contains(git: HostGit, commit: str, ancestor: str | None) -> bool:
    """Whether ``commit`` is or descends from ``ancestor``; no ancestor is contained in everything."""
    if ancestor is None:
        return True
    return git.run("merge-base", "--is-ancestor", ancestor, commit, stage="merge").exit_code == 0


def _tree(git: HostGit, commit: str) -> str | None:
    """The tree of a commit, if that is here."""
    done = git.run("rev-parse", "--verify", "-q", "--end-of-options", f"{commit}^{{tree}}", stage=STAGE)
    return done.stdout.decode("ascii").split()[-1] if done.exit_code == 0 else None


def _give_new(work: HostGit, git: HostGit, new: str, known: tuple[str, ...]) -> None:
    """Bring the merge's own objects into the host; everything below ``known`` is there."""
    lines = "".join(f"{oid}\n" for oid in (new, *(f"^{oid}" for oid in known)))
    pack = work.git_dir / "merge.pack"
    with (
        pack.open("wb") as file,
        work.started("pack-objects", "--revs", "--stdout", "-q", stage="merge", stdin=lines.encode()) as command,
    ):
        for chunk in command.chunks():
            file.write(chunk)
        if command.finish(b"").exit_code:
            raise work.failure("merge", reason="object_corrupt", category=Category.CORRUPT_DATA)
    with pack.open("rb", buffering=0) as packed:
        git.ask("index-pack", "--stdin", "--threads=1", stage=STAGE, stdin=packed)


def _refs(git: HostGit, *names: str) -> dict[str, tuple[str, str]]:
    """The commit of each of these refs that is there, and the ref that it stands for: itself, but for symbolic ones."""
    listed = git.ask("for-each-ref", "--format=%(objectname) %(refname) %(symref)", *names, stage=STAGE)
    found = (line.split(" ") for line in listed.decode("utf-8", "surrogateescape").splitlines())
    return {name: (oid, other or name) for oid, name, other in found if name in names}


def _name_taken(git: HostGit, ref: str) -> bool:
    """Whether a branch stands where ``ref`` would need a directory, or the other way round."""
    above = [ref[:place] for place, letter in enumerate(ref) if letter == "/" and ref.count("/", 0, place) > 1]
    listed = git.ask("for-each-ref", "--format=%(refname)", ref, *above, stage=STAGE)
    names = listed.decode("utf-8", "surrogateescape").splitlines()
    return any(name in above or name.startswith(f"{ref}/") for name in names)


def _checked_out(git: HostGit) -> Iterator[str]:
    """The branches that some work tree of the repository is on."""
    listed = git.ask("worktree", "list", "--porcelain", "-z", stage=STAGE).decode("utf-8", "surrogateescape")
    for record in listed.split("\0\0"):
        fields = record.split("\0")
        if "bare" not in fields:
            yield from (field.removeprefix("branch ") for field in fields if field.startswith("branch "))
