"""What changed from the baseline to the snapshot: counts, line counts and the patch, made on this worker."""

from dataclasses import dataclass
from pathlib import Path

from worker.failures.model import OperationFailed
from worker.imports.host_git import HostGit
from worker.imports.intake import Imported
from worker.imports.limits import MEBIBYTE, Limits

STAGE = "patch"
_EMPTY_TREE = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""git knows these without having them."""
_DIFF = ("diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
_LISTING = 512 * MEBIBYTE
"""Bytes of a listing of a million changed paths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Files by what became of them. ``None`` throughout: the old side is not known here.

    ``insertions`` and ``deletions`` are lines of text files; ``patch`` is a file that ``git apply`` takes,
    ``None`` when old contents are not here or it would pass the limit.
    """

    added: int | None = None
    modified: int | None = None
    deleted: int | None = None
    insertions: int | None = None
    deletions: int | None = None
    patch: Path | None = None


def old_tree(imported: Imported) -> str:
    """The tree that the change is measured from."""
    part = imported.part
    if part.baseline is not None:
        return part.baseline
    return f"{part.base}^{{tree}}" if part.base is not None else _EMPTY_TREE[part.format]


def changes(imported: Imported, patch: Path) -> Changes:
    """Compare the snapshot of a part with its baseline; the patch is written to ``patch`` (0600)."""
    git, pair = imported.git, (old_tree(imported), imported.part.tree)
    raw = git.run(*_DIFF, "--name-status", "-z", *pair, stage=STAGE, output_limit=_LISTING)
    if raw.exit_code:
        return Changes()
    kinds = raw.stdout.split(b"\0")[:-1:2]
    lines = _lines(git, pair)
    return Changes(
        added=kinds.count(b"A"),
        modified=len(kinds) - kinds.count(b"A") - kinds.count(b"D"),
        deleted=kinds.count(b"D"),
        insertions=lines[0] if lines else None,
        deletions=lines[1] if lines else None,
        patch=patch if lines and _write_patch(git, pair, patch, git.limits) else None,
    )


def _lines(git: HostGit, pair: tuple[str, str]) -> tuple[int, int] | None:
    """Inserted and deleted lines, ``None`` when contents are missing."""
    done = git.run(*_DIFF, "--numstat", "-z", *pair, stage=STAGE, output_limit=_LISTING)
    if done.exit_code:
        return None
    rows = [entry.split(b"\t")[:2] for entry in done.stdout.split(b"\0")[:-1]]
    counted = [(int(new), int(old)) for new, old in rows if new != b"-"]  # "-" is a binary file
    return sum(new for new, _ in counted), sum(old for _, old in counted)


def _write_patch(git: HostGit, pair: tuple[str, str], patch: Path, limits: Limits) -> bool:
    """Write the patch; ``False``, and no file, when it cannot be whole."""
    patch.touch(mode=0o600)
    written = 0
    # Uncompressed: binary files are most often packed already, and that they are takes long to find out.
    args = ("-c", "core.compression=0", *_DIFF, "--patch", "--binary", "--full-index", *pair)
    try:
        with patch.open("wb") as file, git.started(*args, stage=STAGE) as command:
            for chunk in command.chunks():
                written += len(chunk)
                if written > limits.patch:
                    break
                file.write(chunk)
            else:
                if command.finish(b"").exit_code == 0:
                    return True
    except OperationFailed as exc:
        if exc.failure.reason != "process_limit":
            raise
    patch.unlink()
    return False
