"""What changed from the baseline to the snapshot: counts, line counts and the patch, made on this worker."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from worker.failures.model import OperationFailed
from worker.imports.host_git import HostGit
from worker.imports.intake import Imported
from worker.imports.limits import MEBIBYTE

STAGE = "patch"
_EMPTY_TREE = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""git knows these without having them."""
_DIFF = ("diff-tree", "-r", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
_WHOLE = ("--raw", "--numstat", "--patch", "--binary", "--full-index")
"""All of it at once: git writes every raw entry, then all line counts, then an empty one, then the patch."""
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
    counts = _Counts()
    patch.touch(mode=0o600)
    if _write_patch(git, pair, counts, patch):
        return replace(counts.changes(), patch=patch)
    patch.unlink()
    return counts.changes() if counts.whole else _kinds_alone(git, pair)


def _kinds_alone(git: HostGit, pair: tuple[str, str]) -> Changes:
    """What became of the files, where old contents are not here."""
    raw = git.run(*_DIFF, "--name-status", *pair, stage=STAGE, output_limit=_LISTING)
    if raw.exit_code:
        return Changes()
    counts = _Counts()
    for status in raw.stdout.split(b"\0")[:-1:2]:
        counts.kinds[status] += 1
    return replace(counts.changes(), insertions=None, deletions=None)


@dataclass(slots=True)
class _Counts:
    """What comes before the patch, counted."""

    kinds: Counter[bytes] = field(default_factory=Counter)
    insertions: int = 0
    deletions: int = 0
    whole: bool = False

    def changes(self) -> Changes:
        return Changes(
            added=self.kinds[b"A"],
            modified=self.kinds.total() - self.kinds[b"A"] - self.kinds[b"D"],
            deleted=self.kinds[b"D"],
            insertions=self.insertions,
            deletions=self.deletions,
        )

    def take(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Count; what follows is the patch."""
        rest, named = b"", False
        for chunk in chunks:
            if self.whole:
                yield chunk
                continue
            *entries, rest = (rest + chunk).split(b"\0")
            for number, entry in enumerate(entries):
                if not entry:
                    self.whole = True
                    yield b"\0".join([*entries[number + 1 :], rest])
                    break
                # A raw entry is two: its modes, ids and status, then its name.
                named = not named and self._counted(entry)

    def _counted(self, entry: bytes) -> bool:
        """Whether the next entry is the name of this one."""
        if entry.startswith(b":"):
            self.kinds[entry[-1:]] += 1
            return True
        new, old = entry.split(b"\t")[:2]
        if new != b"-":  # a binary file
            self.insertions += int(new)
            self.deletions += int(old)
        return False


def _write_patch(git: HostGit, pair: tuple[str, str], counts: _Counts, patch: Path) -> bool:
    """Write the patch, count what it changes; ``False`` when it cannot be whole."""
    written = 0
    # Uncompressed: binary files are most often packed already, and that they are takes long to find out.
    args = ("-c", "core.compression=0", *_DIFF, *_WHOLE, *pair)
    try:
        with patch.open("wb") as file, git.started(*args, stage=STAGE) as command:
            for chunk in counts.take(command.chunks()):
                written += len(chunk)
                if written > git.limits.patch:
                    return False
                file.write(chunk)
            return command.finish(b"").exit_code == 0
    except OperationFailed as exc:
        if exc.failure.reason != "process_limit":
            raise
    return False
