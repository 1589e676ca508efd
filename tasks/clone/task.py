"""`sandbox.clone`: a repository into a sandbox."""

from collections.abc import Mapping
from typing import Any, ClassVar

from tasks.clone.credential import credential_of, revoke
from tasks.clone.git import GitCredential, Network
from tasks.clone.repository import Repository
from tasks.clone.request import CloneRequest, parse, repository_of
from tasks.clone.steps import Cloned, CloneJob, clone, sweep
from worker.app import app
from worker.failures.model import Credential, Verdict
from worker.failures.schedule import CLONE, Schedule
from worker.retrying.attempt import Attempt
from worker.retrying.holding import LETTING_GO, acquire, held, let_go, release
from worker.retrying.requests import After
from worker.retrying.task import ClassifiedTask
from worker.sandboxes.base import Sandbox
from worker.sandboxes.deadline import Deadline


class CloneTask(ClassifiedTask):
    """Result: ``{sandbox{provider, id}, path, workspace, commit, ref, baseline, bytes, attempts, duration_ms}``."""

    name = "sandbox.clone"
    operation: ClassVar[str] = "clone"
    code: ClassVar[str] = "clone_failed"
    event: ClassVar[str] = "sandbox.git"
    schedule: ClassVar[Schedule] = CLONE

    def parse(self, payload: Any) -> CloneRequest:
        """Validate the request."""
        return parse(payload)

    def execute(self, request: CloneRequest, attempt: Attempt) -> dict[str, Any]:
        """Clone once; every step is safe to repeat."""
        config = self.services.settings
        attempt.limit(min(request.deadline or config.clone_deadline, config.deadline_max))
        repository = self._repository(request)
        credential = credential_of(request, repository, attempt, self.services)
        sandbox = acquire(attempt, self.services, request.sandbox, keep=self._after(request).keep or 0)
        attempt.at("clone")
        cloned = self._clone(request, credential, sandbox, attempt)
        attempt.at("release")
        let_go(attempt, self.services, sandbox, self._after(request))
        return _result(sandbox, cloned, attempt)

    def settle(self, request: CloneRequest, attempt: Attempt, verdict: Verdict | None) -> None:
        """Revoke what was minted; after a failure, end what was made and leave what was lent as was asked."""
        revoke(request, self._repository(request), attempt, self.services)
        if verdict is None:
            return
        sandbox = held(attempt, self.services, request.sandbox)
        if sandbox is None:
            return
        if request.sandbox.spec is not None or self._after(request).release:
            release(attempt, self.services, sandbox)
            return
        let_go(attempt, self.services, sandbox, self._after(request))
        sweep(sandbox, self._job(request, attempt), Deadline.after(LETTING_GO))

    def _clone(
        self,
        request: CloneRequest,
        credential: GitCredential | None,
        sandbox: Sandbox,
        attempt: Attempt,
    ) -> Cloned:
        source = Credential.NONE if credential is None else credential.source

        def report(name: str, data: Mapping[str, Any]) -> None:
            attempt.emit(name, provider=sandbox.provider, credential=str(source), **data)

        return clone(sandbox, self._job(request, attempt), credential, attempt.deadline, report)

    def _job(self, request: CloneRequest, attempt: Attempt) -> CloneJob:
        config = self.services.settings
        return CloneJob(
            repository=self._repository(request),
            request=request,
            task_id=attempt.task_id,
            network=Network(proxy=config.git_proxy, ca_file=config.git_ca_file),
        )

    def _repository(self, request: CloneRequest) -> Repository:
        return repository_of(request, http_hosts=self.services.settings.http_hosts)

    def _after(self, request: CloneRequest) -> After:
        return request.after or After(keep=self.services.settings.keep_default)


def _result(sandbox: Sandbox, cloned: Cloned, attempt: Attempt) -> dict[str, Any]:
    return {
        "sandbox": {"provider": sandbox.provider, "id": sandbox.id},
        "path": cloned.path,
        "workspace": cloned.workspace,
        "commit": cloned.commit,
        "ref": cloned.ref,
        "baseline": cloned.baseline,
        "bytes": cloned.bytes,
        "attempts": attempt.number,
        "duration_ms": round((attempt.spent + attempt.elapsed()) * 1000),
    }


clone_task = app.register_task(CloneTask())
