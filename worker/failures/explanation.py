"""What would be done about a failure, and why; for people and for the corpus."""

from dataclasses import dataclass

from worker.failures.classify import HORIZON, Match, classify
from worker.failures.model import Failure
from worker.failures.schedule import CLONE, COPY_BACK, DISPATCH_STEP, Schedule, decide, waiting_helps

SCHEDULES = {
    "clone": CLONE,
    "copy_back": COPY_BACK,
    "copyback": COPY_BACK,
    "capture": COPY_BACK,
    "dispatch": DISPATCH_STEP,
}
"""Operation -> its schedule; any other has that of a clone."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """A judgement and its consequence.

    ``retry`` says whether waiting mends such a failure. ``plan`` holds the seconds before each further attempt of
    the job, without jitter, should it go on failing so. A job may look again at what waiting does not mend (a full
    disk, once, in copy-back): then there is a plan without ``retry``.
    """

    match: Match
    retry: bool
    plan: tuple[float, ...]

    @property
    def countdown(self) -> float | None:
        """Seconds to the next attempt of a failure that waiting mends, else ``None``."""
        return self.plan[0] if self.retry and self.plan else None


def explain(failure: Failure, horizon: float = HORIZON) -> Explanation:
    """Judge ``failure`` as the first attempt of its operation. ``horizon`` is seconds."""
    match = classify(failure, horizon=horizon)
    return Explanation(match, waiting_helps(match), tuple(_plan(failure, match)))


def _plan(failure: Failure, match: Match) -> list[float]:
    """Countdowns of attempts that fail at once and for the same reason, while the deadline allows them."""
    schedule: Schedule = SCHEDULES.get(failure.operation, CLONE)
    plan: list[float] = []
    for attempt in range(1, schedule.attempts):
        remaining = schedule.deadline - sum(plan)
        verdict = decide(
            failure, schedule=schedule, attempt=attempt, remaining=remaining, random=lambda: 0.5, match=match
        )
        if verdict.countdown is None:
            break
        plan.append(verdict.countdown)
    return plan
