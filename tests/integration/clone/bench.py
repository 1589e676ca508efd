"""A GitHub of our own, a local sandbox, and a clone in one call."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tasks.clone.git import GitCredential, Network
from tasks.clone.request import parse, repository_of
from tasks.clone.steps import Cloned, CloneJob, clone
from tests.doubles.github import FaultyGitHub
from tests.doubles.repositories import git, make_repository
from worker.failures.model import Credential, Failure, OperationFailed
from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN, Sandbox, Spec
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.local.provider import LocalProvider
from worker.secrets.secret import Secret

TOKEN = "ghs_" + "C4nary" * 12
RUN = "run-1"


@dataclass
class Bench:
    """The remote side, a sandbox, and what was reported."""

    hub: FaultyGitHub
    remotes: Path
    sandbox: Sandbox
    events: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def repository(self, name: str = "o/r", files: dict[str, bytes] | None = None) -> str:
        """A new private repository that :data:`TOKEN` opens; its commit."""
        commit = make_repository(self.remotes, name, files)
        self.hub.grant(TOKEN, name)
        return commit

    def commit(self, name: str = "o/r", *, files: dict[str, bytes] | None = None, branch: str = "main") -> str:
        """Push one more commit; its id."""
        work = self.work(name)
        for path, data in (files or {"more.txt": b"more\n"}).items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_bytes(data)
        git("add", "-A", cwd=work)
        git("commit", "-qm", "next", "--allow-empty", cwd=work)
        self.push(f"HEAD:refs/heads/{branch}", name=name)
        return git("rev-parse", "HEAD", cwd=work).stdout.strip()

    def work(self, name: str = "o/r") -> Path:
        """The work tree from which the repository was pushed."""
        return self.remotes / f".work-{name.replace('/', '-')}"

    def push(self, *refspecs: str, name: str = "o/r") -> None:
        """Push from the work tree."""
        git("push", "-qf", str(self.remotes / f"{name}.git"), *refspecs, cwd=self.work(name))

    def job(self, name: str = "o/r", *, url: str | None = None, task: str = "task-1", **request: Any) -> CloneJob:
        """A clone of ``name`` from the double."""
        parsed = parse(
            {
                "schema": 1,
                "run_id": RUN,
                "sandbox": {"provider": "local", "spec": {}},
                "repository": {"url": url or self.hub.git_url(*name.split("/"))},
                **request,
            }
        )
        repository = repository_of(parsed, http_hosts=["127.0.0.1", "localhost"])
        return CloneJob(repository=repository, request=parsed, task_id=task, network=Network())

    def clone(self, name: str = "o/r", *, token: str | None = TOKEN, seconds: float = 60, **request: Any) -> Cloned:
        """Clone once."""
        deadline = Deadline.after(seconds)
        return clone(
            self.sandbox, self.job(name, **request), credential(token), deadline, lambda *e: self.events.append(e)
        )

    def failure(self, name: str = "o/r", **options: Any) -> Failure:
        """The facts of a clone that must fail."""
        with pytest.raises(OperationFailed) as caught:
            self.clone(name, **options)
        return caught.value.failure

    def git(self, *args: str, at: str | Path) -> str:
        """What git says inside the checkout."""
        return git(*args, cwd=Path(at)).stdout.rstrip("\n")

    @property
    def root(self) -> Path:
        """Everything of the sandbox."""
        return Path(self.sandbox.layout.repos).parent

    @property
    def home(self) -> Path:
        """``HOME`` of its commands."""
        return self.root / "home" if self.sandbox.provider == "local" else self.root

    def leftovers(self) -> list[str]:
        """Staging directories in the sandbox."""
        return [str(path) for path in Path(self.sandbox.layout.repos).rglob(".sandferry-staging-*")]


def credential(token: str | None) -> GitCredential | None:
    """A static credential."""
    return token and GitCredential(username="x-access-token", token=Secret(token), source=Credential.STATIC)


def local_sandbox(root: Path, env: Mapping[str, str] | None = None, request: str = "r1") -> Sandbox:
    """A new local sandbox."""
    labels = {LABEL_RUN: RUN, LABEL_REQUEST: request}
    return LocalProvider(root).create(Spec(env=env or {}), labels, deadline=Deadline.after(30))
