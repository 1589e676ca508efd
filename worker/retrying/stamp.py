"""The message header that carries a retry's number and what the attempt before left for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

HEADER = "sandferry"
VERSION = 1
FAR = 2.0**40
"""Epoch seconds that no clock shows; a larger number is no time."""
MOST = 999
"""The highest attempt number; no schedule comes near it, and a wilder one is not ours."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """``attempt`` counts from 1; ``carry`` is a sealed text or empty; ``sent_at`` epoch seconds or ``None``."""

    attempt: int
    carry: str = ""
    sent_at: float | None = None

    @classmethod
    def read(cls, headers: Mapping[str, Any] | None, retries: int) -> "Stamp":
        """Read a message's stamp; a backend sends none, then Celery's own count decides."""
        raw = (headers or {}).get(HEADER)
        if not isinstance(raw, Mapping):
            return cls(attempt=retries + 1)
        attempt, carry, sent_at = raw.get("attempt"), raw.get("carry"), raw.get("sent_at")
        return cls(
            attempt=attempt if type(attempt) is int and 0 < attempt <= MOST else retries + 1,
            carry=carry if isinstance(carry, str) else "",
            sent_at=float(sent_at) if isinstance(sent_at, int | float) and 0 <= sent_at < FAR else None,
        )

    def waited(self, now: float) -> float:
        """Seconds since the sender stamped the message; 0 for a retry and for one without a time."""
        return 0.0 if self.sent_at is None or self.attempt > 1 else max(0.0, now - self.sent_at)

    def headers(self, others: Mapping[str, Any] | None) -> dict[str, Any]:
        """The custom headers of the next message: the others stay, the broker's redelivery mark does not."""
        kept = {key: value for key, value in (others or {}).items() if key != "redelivered"}
        return {**kept, HEADER: {"v": VERSION, "attempt": self.attempt, "carry": self.carry}}
