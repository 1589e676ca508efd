"""One attempt of a clone: a script in the sandbox, and the reading of its answer."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

from tasks.clone.answer import asked_elsewhere, broken, delivered
from tasks.clone.git import GitCredential, Network, environment
from tasks.clone.layout import STAGING_PREFIX, Places, attempt_key, places
from tasks.clone.repository import Repository
from tasks.clone.request import CloneRequest
from worker.failures.model import Cancelled, Category, Credential, EndedBy, Failure, OperationFailed
from worker.sandboxes.base import Completed, Sandbox
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.exits import decode_exit
from worker.snapshots.baseline import script as baseline_script

Report = Callable[[str, Mapping[str, Any]], None]
"""Takes the name of a run event and its data."""

_PARTS = ("prelude.sh", "layout.sh", "fetch.sh", "verify.sh", "publish.sh")
_REFUSED_AS: Mapping[str, Category] = {
    "malformed_answer": Category.TRANSIENT_SERVER,
    "disk_full": Category.RESOURCE_EXHAUSTED,
    "head_mismatch": Category.CORRUPT_DATA,
    "checkout_incomplete": Category.CORRUPT_DATA,
    "promisor_object": Category.CORRUPT_DATA,
    "borrowed_objects": Category.CORRUPT_DATA,
    "credential_persisted": Category.POLICY_DENIED,
    "symlink": Category.POLICY_DENIED,
    "owner_directory": Category.POLICY_DENIED,
}
"""Every other refusal is ``invalid_request``: what the request asks for cannot be had in this sandbox."""


_FATAL = 128
"""What git exits with once it has said why. Where nothing was said, there was no room for it: hosted providers keep
the output of a command on the disk that the clone has filled, and git removes what it had fetched when it dies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneJob:
    """What one task clones; the same for all its attempts."""

    repository: Repository
    request: CloneRequest
    task_id: str
    network: Network = field(default_factory=Network)

    @property
    def key(self) -> str:
        """Names the staging directories of this task's attempts."""
        return attempt_key(run_id=self.request.run_id, task_id=self.task_id, repository=self.repository)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloned:
    """Where the checkout lies and what it holds.

    ``path`` is the checkout, ``workspace`` the symlink to it. ``commit`` is ``None`` for an empty repository,
    ``ref`` is full (``refs/heads/main``) and ``None`` for an exact commit. ``baseline`` is a tree id.
    ``bytes`` is what ``.git`` takes on disk. ``adopted``: an earlier attempt had put it there.
    """

    path: str
    workspace: str
    commit: str | None
    ref: str | None
    baseline: str
    bytes: int
    adopted: bool


@cache
def script() -> str:
    """The clone script: one fixed text, so that one command does all the work."""
    return "".join(map(_part, _PARTS))


def clone(
    sandbox: Sandbox, job: CloneJob, credential: GitCredential | None, deadline: Deadline, report: Report
) -> Cloned:
    """Clone once, or take over what an earlier attempt has finished. Leaves nothing behind when it fails.

    :raises OperationFailed: with the facts; git's own words are private in ``Failure.text``.
    :raises Cancelled: the run was cancelled.
    """
    where = places(sandbox.layout, job.repository)
    deadline.check("clone", "clone")
    staging = where.staging(job.key, secrets.token_hex(8))
    env = environment(
        job.repository,
        credential,
        network=job.network,
        trusted=(where.checkout, f"{where.repos}/{where.owner}/{staging}/{where.name}"),
    )
    report("sandbox.git.started", {})
    # Not in the workspace, which need not be there.
    done = sandbox.run(_argv(job, where, staging), env=env, deadline=deadline, cwd="/")
    result = delivered(done.stdout) if done.ok else None
    if done.ended_by is EndedBy.CANCELLED:
        raise Cancelled
    if result is None:
        raise OperationFailed(_failure(sandbox, job.repository, done, credential))
    report("sandbox.git.completed", {"bytes": result.bytes, "adopted": result.adopted})
    return Cloned(
        path=where.checkout,
        workspace=where.link,
        commit=result.commit,
        ref=result.ref,
        baseline=result.tree,
        bytes=result.bytes,
        adopted=result.adopted,
    )


def sweep(sandbox: Sandbox, job: CloneJob, deadline: Deadline) -> None:
    """Remove what killed attempts of this task have left; none of them may be running any more.

    The next attempt would do it; this is for a task that has no next one.
    """
    where = places(sandbox.layout, job.repository)
    argv = ["sh", "-c", _part("sweep.sh"), "sandferry-sweep", where.repos, where.owner, f"{STAGING_PREFIX}{job.key}-"]
    sandbox.run(argv, deadline=deadline, cwd="/")


def _part(name: str) -> str:
    return files(__package__).joinpath("sh", name).read_text()


def _argv(job: CloneJob, where: Places, staging: str) -> list[str]:
    """The script's parameters, in the order in which ``prelude.sh`` takes them. No secret is among them."""
    request, ref = job.request, job.request.ref
    kind, value = next(
        ((kind, value) for kind in ("branch", "tag", "commit") if (value := getattr(ref, kind))), ("default", "")
    )
    return [
        *("sh", "-c", script(), "sandferry-clone"),
        *(kind, value, job.repository.url, str(request.depth or "")),
        *map(_word, (request.fetches_one_branch, request.submodules, request.lfs)),
        request.filter or "",
        *(where.repos, where.workspace, where.scratch, where.owner, where.name, where.key),
        " ".join(where.owner_keys),
        *(job.key, staging),
        baseline_script(),
    ]


def _word(value: bool) -> str:  # noqa: FBT001 - it is what is translated
    return "yes" if value else "no"


def _failure(sandbox: Sandbox, repository: Repository, done: Completed, credential: GitCredential | None) -> Failure:
    if done.ok:
        return Failure(
            operation="clone",
            stage="verify",
            provider=sandbox.provider,
            category=Category.CORRUPT_DATA,
            reason="malformed_answer",
        )
    facts = broken(done.stdout)
    own = (done.exit_code, done.signal)
    text = done.stderr.decode(errors="replace")
    if asked_elsewhere(text, repository):
        credential = None  # it was offered to nobody there, so that its age explains nothing
    exit_code, signal = own if facts.exit_code is None else decode_exit(facts.exit_code)
    if facts.reason is None and done.ended_by is EndedBy.ITSELF and exit_code == _FATAL and not text.strip():
        facts = replace(facts, reason="disk_full")
    return Failure(
        operation="clone",
        stage=facts.stage,
        provider=sandbox.provider,
        program=facts.program,
        exit_code=exit_code,
        signal=signal,
        ended_by=done.ended_by,
        credential=Credential.NONE if credential is None else credential.source,
        credential_age=None if credential is None else credential.age,
        category=None if facts.reason is None else _REFUSED_AS.get(facts.reason, Category.INVALID_REQUEST),
        reason=facts.reason or done.reason,
        text=text,
    )
