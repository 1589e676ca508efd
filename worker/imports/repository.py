"""A host repository: a git repository of this worker's side that requests name and settings place."""

from dataclasses import dataclass
from pathlib import Path

from worker.failures.model import Category, Failure, InvalidRequest, OperationFailed
from worker.imports.header import Header
from worker.imports.host_git import HostGit
from worker.imports.limits import OPERATION, Limits, corrupt
from worker.sandboxes.deadline import Deadline

STAGE = "import"


@dataclass(frozen=True, slots=True)
class HostRepository:
    """``name`` is what requests say; ``git_dir`` is the git directory, bare or not."""

    name: str
    git_dir: Path

    @property
    def objects(self) -> Path:
        """Where its objects lie."""
        return self.git_dir / "objects"

    def git(self, limits: Limits, deadline: Deadline) -> HostGit:
        """Git in this repository, without its hooks."""
        return HostGit(git_dir=self.git_dir, limits=limits, deadline=deadline)

    def object_format(self, limits: Limits, deadline: Deadline) -> str:
        """``sha1`` or ``sha256``."""
        git = self.git(limits, deadline)
        return git.ask("rev-parse", "--show-object-format", stage=STAGE).decode().strip()

    def has_base(self, header: Header, limits: Limits, deadline: Deadline) -> bool:
        """Whether every prerequisite of a bundle is a commit here; a bundle of the other format never fits."""
        if self.object_format(limits, deadline) != header.object_format:
            return False
        names = "".join(f"{oid}\n" for oid in header.prerequisites).encode()
        found = self.git(limits, deadline).ask("cat-file", "--batch-check=%(objecttype)", stage=STAGE, stdin=names)
        return all(line == b"commit" for line in found.splitlines())

    def check_connected(self, quarantine: HostGit, header: Header) -> None:
        """Everything reachable from the bundle's refs is in the quarantine or reachable from a ref here.

        Refs here whose objects are gone say nothing of the bundle and are passed over.

        :raises OperationFailed: stage ``import``, ``bundle_prerequisites``.
        """
        git = self.git(quarantine.limits, quarantine.deadline).borrowing(quarantine.git_dir / "objects")
        tips = "".join(f"{oid}\n" for oid in set(header.refs.values())).encode()
        args = ("rev-list", "--objects", "--stdin", "--ignore-missing", "--not", "--all", "--quiet")
        if git.run(*args, stage=STAGE, stdin=tips).exit_code:
            raise corrupt(STAGE, "bundle_prerequisites")


def host_repository(places: dict[str, Path], name: str) -> HostRepository:
    """The repository that settings place under ``name``.

    :raises InvalidRequest: there is none of this name (``not_configured``).
    :raises OperationFailed: the place holds no git repository.
    """
    if name not in places:
        raise InvalidRequest("host_repository", "not_configured")
    path = places[name].resolve()
    git_dir = path / ".git" if (path / ".git").is_dir() else path
    if not (git_dir / "objects").is_dir() or not (git_dir / "HEAD").is_file():
        raise OperationFailed(
            Failure(operation=OPERATION, stage="deliver", category=Category.INVALID_REQUEST, reason="not_a_repository")
        )
    return HostRepository(name, git_dir)
