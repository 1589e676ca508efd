"""A git directory of our own that a pack goes into before anybody else sees it."""

from pathlib import Path

from worker.failures.model import Category, Failure, OperationFailed
from worker.failures.text import normalise
from worker.imports.header import Header, read_header
from worker.imports.host_git import HostGit, Output
from worker.imports.limits import OPERATION, Limits, corrupt, refused
from worker.imports.pack import PackSize, measure
from worker.sandboxes.deadline import Deadline

STAGE = "index"

# What index-pack says (git 2.39), most specific first; ``None`` is for the classifier: this worker's own trouble.
_SAYINGS: tuple[tuple[str, OperationFailed | None], ...] = (
    ("no space left", None),
    ("disk quota", None),
    ("maximum allowed size", refused(STAGE, "too_large")),
    ("file too large", refused(STAGE, "process_limit")),
    ("out of memory", refused(STAGE, "process_limit")),
    ("cannot allocate memory", refused(STAGE, "process_limit")),
    ("mmap failed", refused(STAGE, "process_limit")),
    ("did not receive expected object", corrupt(STAGE, "bundle_prerequisites")),
    ("unresolved delta", corrupt(STAGE, "bundle_prerequisites")),
    ("premature end", corrupt(STAGE, "pack_truncated")),
    ("early eof", corrupt(STAGE, "pack_truncated")),
    ("error: object ", refused(STAGE, "unsafe_tree")),
    ("fsck error", refused(STAGE, "unsafe_tree")),
)


_OLD_SINS = ("badTimezone", "missingSpaceBeforeDate", "zeroPaddedFilemode")
"""What fsck finds in old commits of many public repositories and what harms nobody; GitLab's Gitaly takes it too."""
_STRICT = "--strict=" + ",".join(f"{sin}=ignore" for sin in _OLD_SINS)

_CONFIG = {
    "sha1": "[core]\n\trepositoryFormatVersion = 0\n\tbare = true\n",
    "sha256": "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = sha256\n",
}


def open_quarantine(directory: Path, object_format: str, limits: Limits, deadline: Deadline) -> HostGit:
    """Make an empty git directory at ``directory`` (made 0700; it must not exist), as ``git init`` does."""
    directory.mkdir(mode=0o700)
    for name in ("objects/info", "objects/pack", "refs"):
        (directory / name).mkdir(parents=True)
    (directory / "HEAD").write_text("ref: refs/heads/main\n")
    (directory / "config").write_text(_CONFIG[object_format])
    return HostGit(git_dir=directory, limits=limits, deadline=deadline)


def read_bundle(bundle: Path, limits: Limits, deadline: Deadline) -> tuple[Header, PackSize]:
    """Read the header of a bundle and measure its pack, without any git.

    :raises OperationFailed: stage ``parse`` or ``index``; see :mod:`worker.imports.header` and ``pack``.
    """
    if bundle.stat().st_size > limits.bundle:
        raise refused("parse", "too_large")
    with bundle.open("rb") as file:
        header = read_header(file)
        file.seek(header.pack_offset)
        size = measure(file, header.object_format, limits, lambda: deadline.check(OPERATION, STAGE))
    return header, size


def index_pack(git: HostGit, bundle: Path, header: Header, *, linked: bool) -> None:
    """Take the pack of ``bundle`` into the quarantine, every object checked by git's fsck, most warnings included.

    ``linked``: everything an object refers to must be there as well, in the pack or where ``git`` borrows from.
    Without the base's objects that cannot be asked.

    :raises OperationFailed: stage ``index``.
    """
    check = (_STRICT, "--fix-thin") if linked else ("--fsck-objects",)
    with bundle.open("rb", buffering=0) as file:
        file.seek(header.pack_offset)
        args = ("index-pack", "--stdin", "--threads=1", *check, f"--max-input-size={git.limits.bundle}")
        done = git.run(*args, stage=STAGE, stdin=file)
    if done.exit_code:
        raise _judged(done)


def _judged(done: Output) -> OperationFailed:
    text = done.stderr.decode(errors="replace")
    said = normalise(text)
    for saying, failure in _SAYINGS:
        if saying in said:
            own = Failure(operation=OPERATION, stage=STAGE, program="git", exit_code=done.exit_code, text=text)
            return OperationFailed(failure.failure if failure else own)
    return OperationFailed(
        Failure(
            operation=OPERATION,
            stage=STAGE,
            program="git",
            exit_code=done.exit_code,
            category=Category.CORRUPT_DATA,
            reason="object_corrupt",
            text=text,
        )
    )
