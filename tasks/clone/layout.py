"""Where a checkout lies in a sandbox. Pure."""

import posixpath
from dataclasses import dataclass
from hashlib import sha256

from tasks.clone.repository import Repository
from worker.failures.model import Category, Failure, OperationFailed
from worker.sandboxes.base import Layout

STAGING_PREFIX = ".sandferry-staging-"
"""Starts the name of a directory in which an attempt clones; it lies beside the destination."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Paths of one clone, all absolute but the names."""

    repos: str
    workspace: str
    scratch: str
    owner: str
    """Components below ``repos``, joined by ``/``."""
    name: str

    @property
    def checkout(self) -> str:
        """The destination: ``<repos>/<owner>/<repo>``."""
        return f"{self.repos}/{self.owner}/{self.name}"

    @property
    def link(self) -> str:
        """The symlink where an agent starts: ``<workspace>/<repo>``."""
        return f"{self.workspace}/{self.name}"

    @property
    def records(self) -> str:
        """Directory of what Sandferry remembers of the checkouts it made."""
        return f"{self.scratch}/clones"

    @property
    def key(self) -> str:
        """Starts the name of this checkout's record; its inode number follows."""
        return _key(self.checkout)

    @property
    def owner_keys(self) -> tuple[str, ...]:
        """For each component of the owner, from the first on: how the record of a checkout there would start."""
        parts = self.owner.split("/")
        return tuple(_key("/".join((self.repos, *parts[: depth + 1]))) for depth in range(len(parts)))

    def staging(self, attempt_key: str, nonce: str) -> str:
        """Name of an attempt's own staging directory, beside the destination."""
        return f"{STAGING_PREFIX}{attempt_key}-{nonce}"


def places(layout: Layout, repository: Repository) -> Places:
    """Check a driver's layout and lay a repository out in it.

    :raises OperationFailed: the layout is not one (``layout_invalid``): a fault of the driver or its settings.
    """
    roots = (layout.repos, layout.workspace, layout.scratch)
    if not all(map(_is_root, roots)) or len(set(roots)) < len(roots):
        raise OperationFailed(
            Failure(operation="clone", stage="layout", category=Category.INVALID_REQUEST, reason="layout_invalid")
        )
    return Places(
        repos=layout.repos,
        workspace=layout.workspace,
        scratch=layout.scratch,
        owner="/".join(repository.owner),
        name=repository.name,
    )


def attempt_key(*, run_id: str, task_id: str, repository: Repository) -> str:
    """Names the staging directories of one task's attempts, so that a later one can clear them away."""
    return sha256(f"{run_id}\0{task_id}\0{repository.url}".encode()).hexdigest()[:16]


def _key(path: str) -> str:
    return sha256(path.encode()).hexdigest()[:32]


def _is_root(path: str) -> bool:
    """Absolute, normal, and not the root of everything. ``//`` has a meaning of its own in POSIX."""
    fits = path.startswith("/") and not path.startswith("//") and posixpath.normpath(path) == path != "/"
    return fits and not {"\n", "\0"} & set(path)
