"""One attempt at a call: what the ledger knows, what the sandbox shows, what the gate says, what is then done."""

import secrets
import time
from dataclasses import dataclass, field, replace
from typing import Literal

from tasks.dispatch.call import ToolCall
from tasks.dispatch.clock import Clock
from tasks.dispatch.failure import Tries
from tasks.dispatch.gate import Action, Ledger, Phase, Place, Position, Receipt, decide
from tasks.dispatch.launcher import Answer, ReceiptOf
from tasks.dispatch.steps import ANY_NONCE, Steps
from worker.failures.model import Category, EndedBy, Failure, InvalidRequest, OperationFailed
from worker.retrying.attempt import Attempt
from worker.retrying.holding import acquire
from worker.retrying.requests import SandboxRequest
from worker.retrying.services import Services
from worker.sandboxes.base import LABEL_RUN, Sandbox
from worker.stores.ledger import Conflict, Entry
from worker.tools.manifest import Effect

_SEEN_AS = {"receipt": Receipt.PRESENT, "running": Receipt.RUNNING}
"""Every other state of a call is no receipt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """A call whose outcome is known. ``adopted``: the receipt was found, not waited for."""

    receipt: ReceiptOf
    adopted: bool
    sandbox: Sandbox
    entry: Entry


@dataclass(slots=True, kw_only=True)
class Flight:
    """One attempt. ``position`` is what the gate is asked with; ``None`` once the outcome is known."""

    call: ToolCall
    attempt: Attempt
    services: Services
    keep: float
    clock: Clock = field(default_factory=Clock)
    position: Position | None = None

    def open(self) -> Entry:
        """Read the ledger. Raises InvalidRequest if the id stands for another call."""
        try:
            entry = self.services.ledger.open(self.call.ledger)
        except Conflict:
            raise InvalidRequest("dispatch_id", "conflict") from None
        self.position = Position(
            effect=self.call.effect,
            phase=Phase.MAYBE_SENT if entry.sent else Phase.NOT_SENT,
            receipt=Receipt.ABSENT,
            ledger=Ledger(entry.vouched),
            place=Place.SAME if entry.sent or self.call.sandbox.id is not None else Place.OTHER,
        )
        if entry.sent:
            self._mark()
        else:
            self.call.check_secrets(time.time())
        return entry

    def fly(self, entry: Entry) -> Landed:
        """Bring the call to its end, or raise: what is raised and ``position`` say all that is known."""
        steps = self._acquire(entry)
        at = self._at()
        if entry.sent:
            same = steps.sandbox.id == entry.sandbox_id
            self.position = at = replace(at, place=Place.SAME if same else Place.OTHER)
        if not self._must_look(entry):
            return self._act(decide(at), steps, entry, None)
        self._enter("receipt")
        # Without the ledger's word nobody knows the nonce: any claim of this call counts.
        nonce = None if entry.vouched == "present" else ANY_NONCE
        return self._judged(steps, entry, steps.look(entry, nonce), nonce)

    def _must_look(self, entry: Entry) -> bool:
        """A call that was sent left traces; so may one that the ledger cannot vouch for, unless it only reads."""
        return entry.sent or (entry.vouched == "absent_unvouched" and self.call.effect is not Effect.READ)

    def _judged(self, steps: Steps, entry: Entry, answer: Answer, nonce: str | None) -> Landed:
        """Act on what a look has shown."""
        seen = _SEEN_AS.get(answer.state or "", Receipt.ABSENT)
        place = Place.SAME if nonce == ANY_NONCE and seen is not Receipt.ABSENT else self._at().place
        self.position = replace(self._at(), receipt=seen, place=place)
        if answer.state == "void":
            entry = self._never_ran(entry)
        return self._act(decide(self._at()), steps, entry, answer, nonce)

    def _act(
        self, action: Action, steps: Steps, entry: Entry, answer: Answer | None, nonce: str | None = None
    ) -> Landed:
        match action:
            case Action.ADOPT_RECEIPT if answer is not None and answer.receipt is not None:
                return self._land(steps, entry, answer.receipt, adopted=True)
            case Action.WAIT:
                self.attempt.emit("tool.dispatch.waiting", **self._seen())
                answer = steps.follow(entry, nonce)
                if answer.state == "running":  # whoever waits is told an end; this is none of our launcher's answers
                    raise self._failed(Category.TRANSIENT_NETWORK, "reply_lost")
                return self._judged(steps, entry, answer, nonce)
            case Action.SEND:
                return self._send(steps, entry)
            case Action.SEND_AGAIN:
                return self._send(steps, self._next(entry))
        raise self._unknown(answer)

    def _send(self, steps: Steps, entry: Entry) -> Landed:
        self.call.check_secrets(time.time())
        staged = self.call.effect is not Effect.READ
        if staged:
            # Apart from the start: an input without a claim is proof that the call has not run.
            self._note("stage")
            if not steps.stage(entry):
                self._bootstrap(steps)
                self._note("stage")
                steps.stage(entry)
        self._enter("dispatch")
        if steps.seconds < 1:
            raise self._too_late()
        self._mark()
        sandbox = steps.sandbox
        self.services.attempts.leave(self.attempt.task_id, fence=self.attempt.fence, carry=self.attempt.carry)
        if not self.services.ledger.send(self.call.ledger, entry, provider=sandbox.provider, sandbox_id=sandbox.id):
            raise self._failed(Category.OPERATION_IN_PROGRESS, "state_change")
        entry = replace(entry, stage="dispatch", provider=sandbox.provider, sandbox_id=sandbox.id)
        self.position = replace(self._at(), phase=Phase.MAYBE_SENT, receipt=Receipt.ABSENT, place=Place.SAME)
        self.attempt.emit("tool.dispatch.sent", **self._seen())
        return self._sent(steps, entry, staged=staged)

    def _sent(self, steps: Steps, entry: Entry, *, staged: bool) -> Landed:
        answer: Answer | None = None
        lost: Exception = self._failed(Category.TRANSIENT_NETWORK, "reply_lost")
        try:
            answer = steps.send(entry, staged=staged)
            if answer.need_package:
                self._bootstrap(steps)
                self._enter("dispatch")
                answer = steps.send(entry, staged=staged)
        except Exception as exc:
            if self.call.effect is Effect.READ or self.attempt.deadline.ended_by() is not None:
                raise
            lost = exc
        self.position = replace(self._at(), phase=Phase.REPLY_LOST)
        if answer is None:
            # The reply did not come through: connect anew and look, before anything else is decided.
            self._enter("receipt")
            steps = self._connected(entry)
            answer = steps.look(entry)
        return self._after(steps, entry, answer, lost)

    def _after(self, steps: Steps, entry: Entry, answer: Answer, lost: Exception) -> Landed:
        """Act on what became of a call that was sent in this attempt."""
        if answer.receipt is not None and self.attempt.stage == "dispatch":
            return self._land(steps, entry, answer.receipt, adopted=False)
        if answer.state == "void":
            self._never_ran(entry)
        if answer.state == "void" or (self.call.effect is Effect.READ and answer.state not in _SEEN_AS):
            # It may be sent again, by the schedule: what broke it once may break it at once again.
            self._enter("dispatch")
            raise lost
        return self._judged(steps, entry, answer, None)

    def _bootstrap(self, steps: Steps) -> None:
        self._note("bootstrap")
        package = self.call.store.fetch(self.call.reference, limit=self.services.settings.tool_package_max)
        steps.upload(package.archive, secrets.token_hex(16))

    def _acquire(self, entry: Entry) -> Steps:
        """Take the sandbox. A call that writes and may have been sent has only the one it was sent to."""
        bound = entry.sent and self.call.effect is not Effect.READ
        wanted = SandboxRequest(provider=entry.provider, id=entry.sandbox_id) if bound else self.call.sandbox
        try:
            self.clock.enter("acquire")
            sandbox = acquire(self.attempt, self.services, wanted, keep=self.keep)
        except OperationFailed as exc:
            if not bound or exc.failure.category is not Category.SANDBOX_LOST:
                raise
            self.position = self._at().out_of_reach()
            failure = exc.failure
        else:
            return Steps(call=self.call, sandbox=sandbox, deadline=self.attempt.deadline)
        self.attempt.stage = "receipt"
        raise OperationFailed(failure)

    def _connected(self, entry: Entry) -> Steps:
        provider = self.services.providers.get(entry.provider)
        labels = {LABEL_RUN: self.call.ledger.run_id}
        sandbox = provider.connect(entry.sandbox_id, labels, deadline=self.attempt.deadline)
        return Steps(call=self.call, sandbox=sandbox, deadline=self.attempt.deadline)

    def _never_ran(self, entry: Entry) -> Entry:
        """The look closed a call that was staged and not begun: it was not sent, and this one never will be."""
        self.position = replace(self._at(), phase=Phase.NOT_SENT, ledger=Ledger.PRESENT)
        return self._next(entry)

    def _next(self, entry: Entry) -> Entry:
        following = self.services.ledger.again(self.call.ledger, entry)
        if following is None:
            raise self._failed(Category.OPERATION_IN_PROGRESS, "state_change")
        return following

    def _land(self, steps: Steps, entry: Entry, receipt: ReceiptOf, *, adopted: bool) -> Landed:
        self.position = None
        if adopted:
            self.attempt.emit("tool.dispatch.adopted", **self._seen())
        return Landed(receipt=receipt, adopted=adopted, sandbox=steps.sandbox, entry=entry)

    def _unknown(self, answer: Answer | None) -> OperationFailed:
        state = answer.state if answer is not None else None
        reason = {"dead": "process_gone", "foreign": "foreign_receipt"}.get(state or "", "receipt_missing")
        if self._at().phase is Phase.NOT_SENT:
            reason = "ledger_lost"
        return self._failed(Category.NOT_FOUND, reason)

    def _failed(self, category: Category, reason: str) -> OperationFailed:
        return OperationFailed(
            Failure(operation="dispatch", stage=self.attempt.stage, category=category, reason=reason)
        )

    def _too_late(self) -> OperationFailed:
        return OperationFailed(
            Failure(operation="dispatch", stage=self.attempt.stage, ended_by=EndedBy.DEADLINE, reason="deadline")
        )

    def _mark(self) -> None:
        """Whatever befalls a later body, it knows that the call may have been sent."""
        self.attempt.carry = str(Tries.read(self.attempt.carry).marked(self.call.effect))

    def _note(self, stage: Literal["bootstrap", "stage"]) -> None:
        self._enter(stage)
        self.services.ledger.note(self.call.ledger, stage)

    def _enter(self, stage: str) -> None:
        self.attempt.at(stage)
        self.clock.enter(stage)

    def _at(self) -> Position:
        if self.position is None:
            raise RuntimeError("the outcome is known")
        return self.position

    def _seen(self) -> dict[str, str]:
        return {"tool": self.call.manifest.name, "effect": str(self.call.effect)}
