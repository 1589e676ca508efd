"""Category -> verdict: whether to try again, and after how many seconds."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from worker.failures.classify import ALL_RULES, HORIZON, Match, classify
from worker.failures.model import Category, Failure, Verdict
from worker.failures.rules import Rule

RETRIED = frozenset(
    {
        Category.TRANSIENT_NETWORK,
        Category.TRANSIENT_SERVER,
        Category.RATE_LIMITED,
        Category.TOKEN_REPLICATION,
        Category.OPERATION_IN_PROGRESS,
    }
)
"""Categories that waiting can mend, whatever the step."""

JITTERED = frozenset({Category.TRANSIENT_NETWORK, Category.TRANSIENT_SERVER})
"""Many tasks meet the same outage at once; a token's replication is one task's own clock."""

LASTING = frozenset({"unfinished_operation"})
"""Reasons of a retried category that last until a person acts: a merge nobody concluded is still there in 30 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How often and when a job tries again. Times are seconds.

    ``attempts`` counts the first one. ``countdowns[n]`` follows attempt ``n + 1``; the last one repeats.
    ``deadline`` bounds all attempts together. ``reasons`` gives a reason countdowns of its own, one for each
    time it may be met, and makes ``resource_exhausted`` worth a retry. ``jitter`` is a share of the countdown.
    """

    attempts: int
    countdowns: tuple[float, ...]
    deadline: float
    reasons: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    jitter: float = 0.2

    def __post_init__(self) -> None:
        if self.attempts > 1 and not self.countdowns:
            raise ValueError("schedule: more than one attempt needs a countdown")


CLONE = Schedule(attempts=3, countdowns=(3.0, 9.0), deadline=300.0)
COPY_BACK = Schedule(attempts=5, countdowns=(5.0, 15.0, 30.0, 30.0), deadline=900.0, reasons={"disk_full": (30.0,)})
DISPATCH_STEP = Schedule(attempts=2, countdowns=(2.0,), deadline=720.0)
"""One step's. The deadline is the longest tool timeout (600 s) and 120 s; a request passes its own as ``remaining``."""
DISPATCH_LOOK = Schedule(attempts=6, countdowns=(2.0, 5.0, 15.0, 30.0, 30.0), deadline=720.0)
"""Looking for the receipt of a call that writes: unknown is the last answer, so a sandbox may be away for a minute."""
DISPATCH = Schedule(attempts=12, countdowns=(2.0,), deadline=720.0)
"""All of a call's attempts: seven steps that are repeated once, and five more looks."""


def decide(
    failure: Failure,
    *,
    schedule: Schedule,
    attempt: int,
    remaining: float,
    random: Callable[[], float],
    match: Match | None = None,
    rules: Iterable[Rule] = ALL_RULES,
    horizon: float = HORIZON,
    met: int | None = None,
) -> Verdict:
    """Judge a failure and say what follows. Pure: ``random`` gives [0, 1).

    ``attempt`` is the one that failed (1 is the first), ``remaining`` the seconds left of the deadline: a
    countdown must be less. ``match`` saves the judgement when it is known already. ``met`` counts the earlier
    attempts that failed for the same reason (all of them, when it is not given); it bounds ``schedule.reasons``.
    """
    match = match or classify(failure, rules, horizon)
    if not _worth_retrying(match, failure, schedule):
        return _verdict(match)
    if attempt >= schedule.attempts:
        return _verdict(match, exhausted=True)
    countdown = _countdown(match, failure, schedule, attempt, attempt - 1 if met is None else met)
    if countdown is None:
        return _verdict(match, exhausted=True)
    if match.category in JITTERED:
        countdown *= 1 + schedule.jitter * (2 * random() - 1)
    if not countdown < remaining:
        return _verdict(match, exhausted=True)
    return _verdict(match, countdown=countdown)


def waiting_helps(match: Match) -> bool:
    """Whether time alone can mend it, whatever the job and the step."""
    return match.category in RETRIED and match.reason not in LASTING


def _worth_retrying(match: Match, failure: Failure, schedule: Schedule) -> bool:
    """Whether another attempt could help, were there one left and time for it."""
    match match.category:
        case Category.RESOURCE_EXHAUSTED:
            return match.reason in schedule.reasons
        case Category.TIMEOUT_AMBIGUOUS | Category.UNKNOWN:
            return failure.idempotent
        case _:
            return waiting_helps(match)


def _countdown(match: Match, failure: Failure, schedule: Schedule, attempt: int, met: int) -> float | None:
    """Seconds to wait before jitter, or ``None`` when the reason's own countdowns are used up.

    Nobody knows whether an unknown failure passes: it is tried once more, and only after the first attempt.
    """
    if match.category is Category.UNKNOWN and attempt > 1:
        return None
    own = schedule.reasons.get(match.reason)
    if own is not None:
        return own[met] if met < len(own) else None
    if match.category is Category.RATE_LIMITED and failure.retry_after is not None:
        return max(0.0, failure.retry_after)
    return schedule.countdowns[min(attempt, len(schedule.countdowns)) - 1]


def _verdict(match: Match, *, countdown: float | None = None, exhausted: bool = False) -> Verdict:
    return Verdict(
        category=match.category,
        reason=match.reason,
        retry=countdown is not None,
        countdown=countdown,
        rule=match.rule,
        exhausted=exhausted,
    )
