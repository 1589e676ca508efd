"""A failure of a call, with all that the gate needs to say whether its outcome is known; and its retries. Pure."""

from dataclasses import dataclass, fields, replace

from tasks.dispatch.gate import Action, Ledger, Phase, Place, Position, Receipt, decide
from worker.failures.cause import Cause
from worker.failures.model import Category, Failure, Verdict
from worker.tools.manifest import Effect

OUTCOME_UNKNOWN = "tool_outcome_unknown"
"""The rule of a verdict that the outcome cannot be known."""
DISPATCH = "dispatch"
SENT = "sent_"
"""Begins the mark of a call that may have been sent; its effect ends it."""
LOOKS = frozenset({"acquire", "receipt"})
"""Steps that only look for what became of a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFailure(Failure):
    """The facts of a failure and where the call stood. ``position`` is ``None`` once the outcome is known."""

    effect: Effect
    position: Position | None = None

    @property
    def sent(self) -> bool:
        """Whether the call may have been sent."""
        return self.position is not None and self.position.phase is not Phase.NOT_SENT

    @property
    def unknown(self) -> bool:
        """Whether, with the sandbox out of reach, nobody could say what became of the call."""
        return self.position is not None and decide(self.position.out_of_reach()) is Action.UNKNOWN


def tool_failure(failure: Failure, *, stage: str, effect: Effect, position: Position | None) -> ToolFailure:
    """The same facts, said of the step that met them. What may be repeated: a read, and every step that is no send."""
    known = {each.name: getattr(failure, each.name) for each in fields(Failure)}
    never_sent = position is None or position.phase is Phase.NOT_SENT
    known |= {"operation": "dispatch", "stage": stage}
    known["idempotent"] = effect is Effect.READ or never_sent or stage in LOOKS
    return ToolFailure(**known, effect=effect, position=position)


def sent_before(effect: Effect) -> Position:
    """Where a call stands that this task may have sent, as long as nobody has looked for it anew."""
    return Position(
        effect=effect, phase=Phase.MAYBE_SENT, receipt=Receipt.UNREACHABLE, ledger=Ledger.PRESENT, place=Place.OTHER
    )


def verdict_of(failure: Failure, verdict: Verdict) -> Verdict:
    """What is final and leaves a call's outcome open is unknown: never repeated, never a plain failure."""
    if verdict.retry or not isinstance(failure, ToolFailure) or not failure.unknown:
        return verdict
    if verdict.category is Category.CANCELLED or (verdict.category is Category.INVALID_REQUEST and not failure.sent):
        return verdict
    return replace(verdict, category=Category.UNKNOWN, exhausted=False, rule=OUTCOME_UNKNOWN)


def cause_of_tool(failure: ToolFailure, verdict: Verdict, cause: Cause) -> Cause:
    """The cause line: ``cause`` is what any job would say."""
    if verdict.rule == OUTCOME_UNKNOWN:
        return Cause.of(
            "managed_tool_outcome_unknown",
            stage=DISPATCH,
            effect=str(failure.effect),
            signal=failure.signal,
            errno=failure.errno,
            http=failure.http_status,
            exception=failure.exception,
            reason=verdict.reason,
        )
    if cause.code == "managed_tool_dispatch_failed":
        return Cause.of(cause.code, cause.nested, **{**dict(cause.fields), "effect": str(failure.effect)})
    return cause


@dataclass(frozen=True, slots=True)
class Tries:
    """How often each step was repeated; rides from attempt to attempt as ``dispatch=1,receipt=2,sent_write=1``."""

    counts: tuple[tuple[str, int], ...] = ()

    @classmethod
    def read(cls, text: str) -> "Tries":
        """Read what :meth:`__str__` wrote; anything else is no tries."""
        pairs = [pair.partition("=") for pair in text.split(",")] if text else []
        if not all(name.isidentifier() and count.isdecimal() for name, _, count in pairs):
            return cls()
        return cls(tuple((name, int(count)) for name, _, count in pairs))

    def __str__(self) -> str:
        return ",".join(f"{name}={count}" for name, count in self.counts)

    def of(self, step: str) -> int:
        """How often a step was repeated."""
        return dict(self.counts).get(step, 0)

    @property
    def sent(self) -> Effect | None:
        """The effect of the call, if a body of this task may have sent it or found that it was sent."""
        return next((effect for effect in Effect if self.of(f"{SENT}{effect}")), None)

    def marked(self, effect: Effect) -> "Tries":
        """The same, with the call known to be sent, perhaps."""
        return self if self.sent else self.plus(f"{SENT}{effect}")

    def plus(self, step: str) -> "Tries":
        """The same with one more of a step."""
        return Tries(tuple(sorted({**dict(self.counts), step: self.of(step) + 1}.items())))
