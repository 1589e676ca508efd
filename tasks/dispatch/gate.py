"""The gate: may a call be sent? One pure truth table; nothing else decides.

``docs/dispatch.md`` holds the same table in words, and the test of this module reads it from there.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from worker.tools.manifest import Effect


class Phase(StrEnum):
    """How far the call had come, as far as anybody knows."""

    NOT_SENT = "not_sent"
    MAYBE_SENT = "maybe_sent"
    """Recorded as about to be sent; whoever sent it never said what became of it."""
    REPLY_LOST = "reply_lost"
    """Sent, and its answer did not come through."""


class Receipt(StrEnum):
    """What a look into the sandbox found."""

    PRESENT = "present"
    RUNNING = "running"
    ABSENT = "absent"
    """No claim, or one whose process is gone without a receipt."""
    UNREACHABLE = "unreachable"


class Ledger(StrEnum):
    """What the ledger says of the call."""

    PRESENT = "present"
    ABSENT_NEW = "absent_new"
    """It is younger than the ledger, so that the ledger would know if it had been sent."""
    ABSENT_UNVOUCHED = "absent_unvouched"
    """It may be older than the ledger, which then cannot know."""


class Place(StrEnum):
    """Which sandbox is at hand."""

    SAME = "same"
    """The recorded one or, without a record, the one that every message of this call names."""
    OTHER = "other"


class Action(StrEnum):
    """What to do."""

    SEND = "send"
    SEND_AGAIN = "send_again"
    ADOPT_RECEIPT = "adopt_receipt"
    WAIT = "wait"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """All that the gate looks at. The effect is the pinned package's, never the request's."""

    effect: Effect
    phase: Phase
    receipt: Receipt
    ledger: Ledger
    place: Place

    def out_of_reach(self) -> "Position":
        """The same, with the sandbox out of reach."""
        return replace(self, receipt=Receipt.UNREACHABLE)


def decide(at: Position) -> Action:
    """The truth table."""
    if at.place is Place.SAME and at.receipt is Receipt.PRESENT:
        return Action.ADOPT_RECEIPT
    if at.place is Place.SAME and at.receipt is Receipt.RUNNING:
        return Action.WAIT
    if at.effect is Effect.READ:
        return Action.SEND if at.phase is Phase.NOT_SENT else Action.SEND_AGAIN
    return Action.SEND if _never_sent(at) else Action.UNKNOWN


def _never_sent(at: Position) -> bool:
    """Whether it is certain that the call was sent nowhere: the ledger vouches for it, or the sandbox's disk."""
    if at.phase is not Phase.NOT_SENT or at.receipt in {Receipt.PRESENT, Receipt.RUNNING}:
        return False
    if at.ledger is Ledger.ABSENT_UNVOUCHED:
        return at.place is Place.SAME and at.receipt is Receipt.ABSENT
    return True
