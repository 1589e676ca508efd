"""A merge of three trees in a quarantine, where no configuration or driver of anybody applies."""

from dataclasses import dataclass

from worker.imports.host_git import HostGit

STAGE = "merge"
_NO_TIME = {"GIT_AUTHOR_DATE": "@0 +0000", "GIT_COMMITTER_DATE": "@0 +0000"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The tree of a merge, or the paths that conflict."""

    tree: str | None
    conflicts: tuple[bytes, ...] = ()


def merge_trees(git: HostGit, *, base: str, ours: str, theirs: str) -> Merged:
    """Merge what became of ``base`` in ``ours`` and in ``theirs``; all are trees.

    ``merge-tree --merge-base`` needs git 2.40; three commits that nobody keeps say the same to git 2.38.

    :raises OperationFailed: stage ``merge``; a conflict is no failure.
    """
    root = commit_tree(git, base, (), "base", env=_NO_TIME)
    sides = [commit_tree(git, tree, (root,), name, env=_NO_TIME) for tree, name in ((ours, "ours"), (theirs, "theirs"))]
    done = git.run("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", *sides, stage=STAGE)
    words = done.stdout.split(b"\0")[:-1]
    if done.exit_code == 0:
        return Merged(tree=words[0].decode("ascii"))
    if done.exit_code == 1:
        return Merged(tree=None, conflicts=tuple(dict.fromkeys(words[1:])))
    raise git.failure(STAGE, exit_code=done.exit_code, text=done.stderr.decode(errors="replace"))


def commit_tree(
    git: HostGit, tree: str, parents: tuple[str, ...], message: str, env: dict[str, str] | None = None
) -> str:
    """Write a commit into the quarantine; its id."""
    args = [word for parent in parents for word in ("-p", parent)]
    written = git.ask("commit-tree", *args, tree, stage=STAGE, stdin=message.encode(), env=env)
    return written.decode("ascii").strip()
