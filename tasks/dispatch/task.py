"""`tool.dispatch`: a managed tool in a sandbox."""

import random
from typing import Any, ClassVar

from tasks.dispatch.call import ToolCall, ready
from tasks.dispatch.ending import end_tool
from tasks.dispatch.failure import (
    OUTCOME_UNKNOWN,
    ToolFailure,
    Tries,
    cause_of_tool,
    sent_before,
    tool_failure,
    verdict_of,
)
from tasks.dispatch.flight import Flight, Landed
from tasks.dispatch.request import DispatchRequest, parse
from tasks.dispatch.result import outcome_of, output_of, reason_of
from worker.app import app
from worker.failures.cause import Cause
from worker.failures.classify import classify
from worker.failures.model import Category, Failure, OperationFailed, Verdict
from worker.failures.schedule import DISPATCH, DISPATCH_LOOK, DISPATCH_STEP, Schedule, decide
from worker.observability.logs import logger
from worker.retrying.attempt import Attempt, Postponed
from worker.retrying.facts import facts
from worker.retrying.holding import held, let_go, release
from worker.retrying.patience import patient
from worker.retrying.requests import After
from worker.retrying.task import ClassifiedTask
from worker.secrets.redaction import Redactor, tail
from worker.settings import TOOL_MARGIN
from worker.stores.redis import StoreError

log = logger(__name__)

_NO_SANDBOX = frozenset({"validate", "unseal"})
_NOTHING_RAN = frozenset({"acquire", "bootstrap", "stage"})
"""Stages at which a sandbox of ours holds no trace of a tool that anybody could want."""


class DispatchTask(ClassifiedTask):
    """Result: ``{dispatch_id, package, effect, outcome, exit_code, signal, output | artifact, truncated, reason,
    receipt, sandbox{provider, id}, attempts, steps_ms}``.
    """  # noqa: D205 - one sentence

    name = "tool.dispatch"
    operation: ClassVar[str] = "dispatch"
    code: ClassVar[str] = "managed_tool_dispatch_failed"
    event: ClassVar[str] = "tool.dispatch"
    schedule: ClassVar[Schedule] = DISPATCH

    def parse(self, payload: Any) -> DispatchRequest:
        """Validate the request."""
        return parse(payload)

    def execute(self, request: DispatchRequest, attempt: Attempt) -> dict[str, Any]:
        """Bring the call to its end, or say where it stood."""
        call = ready(request, attempt, self.services)
        attempt.limit(call.timeout + TOOL_MARGIN)
        flight = Flight(call=call, attempt=attempt, services=self.services, keep=self._after(request).keep or 0)
        if Tries.read(attempt.carry).sent:
            flight.position = sent_before(call.effect)
        try:
            return self._execute(request, flight)
        except Postponed:
            raise  # it has done nothing, and is made again
        except Exception as exc:  # noqa: BLE001 - the facts are completed with where the call stood
            failure = facts(exc, attempt)
        # Outside the except block: what is read along the chain has been read.
        raise OperationFailed(tool_failure(failure, stage=attempt.stage, effect=call.effect, position=flight.position))

    def facts_of(self, exc: BaseException, attempt: Attempt) -> Failure:
        """Whatever keeps a body from looking, the outcome of a call that an earlier one sent stays open."""
        failure = super().facts_of(exc, attempt)
        effect = Tries.read(attempt.carry).sent
        if effect is None or isinstance(failure, ToolFailure):
            return failure
        return tool_failure(failure, stage="receipt", effect=effect, position=sent_before(effect))

    def settle(self, request: DispatchRequest, attempt: Attempt, verdict: Verdict | None) -> None:
        """After a failure, leave the sandbox as was asked; end one that was made for nothing."""
        if verdict is None:
            return
        if verdict.category is Category.CANCELLED and Tries.read(attempt.carry).sent:
            self._end_tool(request, attempt)
        elif attempt.stage in _NO_SANDBOX and attempt.number == attempt.fence == 1:
            return
        sandbox = held(attempt, self.services, request.sandbox)
        if sandbox is None:
            return
        if verdict.rule == OUTCOME_UNKNOWN:
            # Whatever the request says: if anything knows what happened, it is this sandbox.
            let_go(attempt, self.services, sandbox, After(keep=self.services.settings.keep_default))
        elif request.sandbox.spec is not None and attempt.stage in _NOTHING_RAN:
            release(attempt, self.services, sandbox)
        else:
            let_go(attempt, self.services, sandbox, self._after(request))

    def judge(self, failure: Failure, attempt: Attempt, remaining: float) -> Verdict:
        """Each step is repeated once; looking for the outcome of a call that writes, more often."""
        looks = isinstance(failure, ToolFailure) and failure.sent and failure.unknown
        step = "receipt" if looks else attempt.stage
        tries = Tries.read(attempt.carry)
        verdict = decide(
            failure,
            match=classify(failure, horizon=self.services.settings.replication_horizon),
            schedule=DISPATCH_LOOK if looks else DISPATCH_STEP,
            attempt=tries.of(step) + 1,
            remaining=remaining,
            random=random.random,
        )
        if verdict.retry:
            attempt.carry = str(tries.plus(step))
        return verdict_of(failure, verdict)

    def cause(self, failure: Failure, verdict: Verdict) -> Cause:
        """Say what may leave the worker of a failure."""
        cause = super().cause(failure, verdict)
        return cause_of_tool(failure, verdict, cause) if isinstance(failure, ToolFailure) else cause

    def _execute(self, request: DispatchRequest, flight: Flight) -> dict[str, Any]:
        attempt = flight.attempt
        entry = flight.open()
        attempt.emit("tool.dispatch.started", tool=flight.call.manifest.name, effect=str(flight.call.effect))
        if entry.result is not None:
            flight.position = None
            return self._answer_again(request, attempt, entry.result)
        landed = flight.fly(entry)
        attempt.at("collect")
        flight.clock.enter("collect")
        result = self._result(request, flight, landed)
        self._keep(flight.call, landed, result)
        attempt.emit(
            "tool.dispatch.completed",
            tool=flight.call.manifest.name,
            outcome=result["outcome"],
            exit_code=result["exit_code"],
            adopted=landed.adopted,
            bytes=len(landed.receipt.stdout),
            duration_ms=sum(result["steps_ms"].values()),
        )
        attempt.at("release")
        let_go(attempt, self.services, landed.sandbox, self._after(request))
        return result

    def _end_tool(self, request: DispatchRequest, attempt: Attempt) -> None:
        try:
            end_tool(self.services, run_id=attempt.run_id, dispatch_id=request.dispatch_id or attempt.task_id)
        except Exception as exc:  # noqa: BLE001 - the sandbox is left in order all the same
            log.warning("tool not ended", exception=type(exc).__name__)

    def _answer_again(self, request: DispatchRequest, attempt: Attempt, result: dict[str, Any]) -> dict[str, Any]:
        """The call is done: the same answer again, and the sandbox as this message wants it."""
        attempt.emit("tool.dispatch.completed", outcome=result["outcome"], adopted=True)
        sandbox = held(attempt, self.services, request.sandbox)
        if sandbox is not None:
            let_go(attempt, self.services, sandbox, self._after(request))
        return result

    def _result(self, request: DispatchRequest, flight: Flight, landed: Landed) -> dict[str, Any]:
        call, attempt, receipt = flight.call, flight.attempt, landed.receipt
        output = output_of(
            receipt,
            call.manifest.output,
            attempt.secrets,
            inline=self.services.settings.tool_output_inline,
            store=lambda: self.services.artifact_store(request.artifact_store),
        )
        outcome = outcome_of(receipt)
        if outcome != "succeeded" and receipt.stderr:
            self.services.diagnostics.keep(
                attempt.task_id, attempt.number, tail(receipt.stderr, Redactor(attempt.secrets))
            )
        shown = {"output": output.value} if output.artifact is None else {"artifact": output.artifact}
        return {
            "dispatch_id": call.dispatch_id,
            "package": str(call.reference),
            "effect": str(call.effect),
            "outcome": outcome,
            "exit_code": receipt.exit_code,
            "signal": receipt.signal,
            **shown,
            "truncated": receipt.truncated,
            "reason": reason_of(receipt) or output.reason,
            "receipt": "adopted" if landed.adopted else "fresh",
            "sandbox": {"provider": landed.sandbox.provider, "id": landed.sandbox.id},
            "attempts": attempt.number,
            "steps_ms": flight.clock.milliseconds(),
        }

    def _keep(self, call: ToolCall, landed: Landed, result: dict[str, Any]) -> None:
        try:
            patient(lambda: self.services.ledger.finish(call.ledger, landed.entry, result))
        except StoreError:
            log.warning("result not kept in the ledger, its receipt is in the sandbox")

    def _after(self, request: DispatchRequest) -> After:
        return request.after or After(keep=self.services.settings.keep_default)


dispatch_task = app.register_task(DispatchTask())
