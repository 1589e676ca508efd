"""`workspace.copy_back`: the work of an agent out of its sandbox."""

import random
from typing import Any, ClassVar

from tasks.copy_back.cause import CODE, cause
from tasks.copy_back.request import CopyBackRequest
from tasks.copy_back.result import conflicts, outcome, result
from tasks.copy_back.steps import CopyBack
from worker.app import app
from worker.failures.cause import Cause
from worker.failures.classify import classify
from worker.failures.model import Category, Failure, InvalidRequest, Verdict
from worker.failures.schedule import COPY_BACK, Schedule, decide
from worker.imports.scratch import scratch
from worker.observability.logs import logger
from worker.retrying.attempt import SIGN_OF_LIFE, Attempt
from worker.retrying.holding import acquire, held, let_go
from worker.retrying.requests import After, validated
from worker.retrying.task import ClassifiedTask
from worker.sandboxes.base import Sandbox
from worker.stores.operations import RECOVER, Closed, Ended

log = logger(__name__)


class CopyBackTask(ClassifiedTask):
    """Result: ``{operation_id, outcome, artifact, snapshot, base, files, omitted, parts, refs, merged, bytes}``."""

    name = "workspace.copy_back"
    operation: ClassVar[str] = "copy_back"
    code: ClassVar[str] = CODE
    event: ClassVar[str] = "workspace.copy_back"
    schedule: ClassVar[Schedule] = COPY_BACK

    def parse(self, payload: Any) -> CopyBackRequest:
        """Validate the request; the names it gives must be the operator's."""
        request = validated(CopyBackRequest, payload)
        self.services.artifact_store(request.store)
        if request.deliver is not None and request.deliver.repository not in self.services.settings.host_repositories:
            raise InvalidRequest("deliver_repository", "not_configured")
        return request

    def execute(self, request: CopyBackRequest, attempt: Attempt) -> dict[str, Any]:
        """Capture, fetch, check and deliver once."""
        config = self.services.settings
        attempt.limit(min(request.deadline or self.schedule.deadline, config.deadline_max))
        done = self._begin(request, attempt)
        if done is not None:
            self._leave(request, attempt)  # the body that ended it died before it could
            return done
        attempt.emit("workspace.copy_back.started", provider=request.sandbox.provider)
        sandbox = acquire(attempt, self.services, request.sandbox.wanted(), keep=self._after(request).keep or 0)
        job = CopyBack(request, sandbox, attempt, self.services)
        with scratch(config.scratch_dir) as home:
            captured = job.take()
            attempt.emit("workspace.copy_back.captured", parts=len(captured.text.parts))
            brought = job.bring(captured, home)
        answer = result(operation_id(attempt), brought)
        self._finish(attempt, outcome(brought), result=answer, details=conflicts(brought))
        attempt.emit("workspace.copy_back.completed", outcome=outcome(brought), bytes=brought.artifact.size)
        self._leave(request, attempt, sandbox)
        return answer

    def judge(self, failure: Failure, attempt: Attempt, remaining: float) -> Verdict:
        """Judge with the earlier causes in view: a full disk is met again only once."""
        match = classify(failure, horizon=self.services.settings.replication_horizon)
        return decide(
            failure,
            match=match,
            schedule=self.schedule,
            attempt=attempt.number,
            remaining=remaining,
            random=random.random,
            met=self._met(attempt, match.reason),
        )

    def cause(self, failure: Failure, verdict: Verdict) -> Cause:
        """Say which step failed; below it, what the sandbox's helper said if it was valid."""
        return cause(failure, verdict)

    def note(self, request: Any, attempt: Attempt, verdict: Verdict, line: Cause) -> None:
        """Write the cause into the operation's record; the last one closes it."""
        if request is None or attempt.operation_fence is None:
            return
        if verdict.retry and verdict.countdown is not None:
            self.services.operations.attempt_failed(
                operation_id(attempt), attempt.operation_fence, attempt=attempt.number, cause=line,
                wait=verdict.countdown,
            )  # fmt: skip
            return
        status: Ended = "retry_exhausted" if verdict.exhausted else "failed"
        if verdict.category is Category.CANCELLED:
            status = "cancelled"
        lost = verdict.category is Category.SANDBOX_LOST
        self._finish(attempt, status, cause=line, next_action="" if lost else RECOVER)

    def settle(self, request: CopyBackRequest, attempt: Attempt, verdict: Verdict | None) -> None:
        """After a failure keep the sandbox: the work is in it, and only there."""
        if verdict is None:
            return
        sandbox = held(attempt, self.services, request.sandbox.wanted())
        if sandbox is not None:
            let_go(attempt, self.services, sandbox, After(keep=self.services.settings.keep_max))

    def _begin(self, request: CopyBackRequest, attempt: Attempt) -> dict[str, Any] | None:
        """Open the operation's record; the result, if it has ended well already."""
        attempt.at("record")
        opened = self.services.operations.begin(
            operation_id(attempt), run_id=request.run_id, task_id=attempt.task_id, provider=request.sandbox.provider,
            sandbox_id=request.sandbox.id, recovers=request.recovers or "", request=request.model_dump(by_alias=True),
        )  # fmt: skip
        match opened:
            case Closed(why="done", result=dict() as done):
                return done
            case Closed(why="refused"):
                raise InvalidRequest("recovers", "not_failed")
            case Closed():
                raise InvalidRequest("run_id", "conflict")
        fence = attempt.operation_fence = opened.fence
        attempt.every(SIGN_OF_LIFE, lambda: self.services.operations.renew(operation_id(attempt), fence))
        return None

    def _finish(self, attempt: Attempt, status: Ended, **more: Any) -> None:
        fence = attempt.operation_fence
        self.services.operations.finish(operation_id(attempt), fence, status, attempt=attempt.number, **more)

    def _leave(self, request: CopyBackRequest, attempt: Attempt, sandbox: Sandbox | None = None) -> None:
        """Let go of the sandbox. The work is delivered: its success stands whatever becomes of the sandbox."""
        attempt.stage = "release"
        try:
            sandbox = sandbox or held(attempt, self.services, request.sandbox.wanted())
            if sandbox is not None:
                let_go(attempt, self.services, sandbox, self._after(request))
        except Exception as exc:  # noqa: BLE001 - see above; what is left behind the reaper finds
            log.warning("sandbox not let go", exception=type(exc).__name__)

    def _met(self, attempt: Attempt, reason: str) -> int:
        record = self.services.operations.read(operation_id(attempt))
        causes = [line for _, line in record.attempts] if record else []
        return sum(f"reason={reason}" in line.replace(";", " ").split() for line in causes)

    def _after(self, request: CopyBackRequest) -> After:
        return request.after or After(keep=self.services.settings.keep_default)


def operation_id(attempt: Attempt) -> str:
    """One record per task: its attempts share it."""
    return f"op-{attempt.task_id}"


copy_back_task = app.register_task(CopyBackTask())
