import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.failures.classify import Match
from worker.failures.model import Category, Credential, EndedBy, Failure, Verdict
from worker.failures.schedule import CLONE, COPY_BACK, DISPATCH_STEP, RETRIED, Schedule, decide


def failure(category: Category | None = None, **facts: object) -> Failure:
    return Failure(operation="clone", stage="fetch", category=category, **facts)


def judge(what: Failure, *, schedule=CLONE, attempt=1, remaining=300.0, chance=0.5, **more: object) -> Verdict:
    return decide(what, schedule=schedule, attempt=attempt, remaining=remaining, random=lambda: chance, **more)


class TestWhatIsRetried:
    @pytest.mark.parametrize(
        ("category", "idempotent", "retry"),
        [
            (category, idempotent, category in RETRIED or (idempotent and category in ("unknown", "timeout_ambiguous")))
            for category, idempotent in itertools.product(Category, (False, True))
        ],
    )
    def test_first_attempt(self, category, idempotent, retry):
        verdict = judge(failure(category, idempotent=idempotent))
        assert verdict.retry is retry
        assert verdict.countdown == (3.0 if retry else None)
        assert verdict.exhausted is False

    def test_the_list_is_the_design(self):
        names = "transient_network transient_server rate_limited token_replication operation_in_progress"
        assert set(names.split()) == RETRIED

    @pytest.mark.parametrize(
        ("schedule", "idempotent", "attempt", "met", "expected"),
        [
            (CLONE, True, 1, None, (3.0, False)),
            (CLONE, True, 2, None, (None, True)),
            (CLONE, True, 3, None, (None, True)),
            (COPY_BACK, True, 1, 0, (5.0, False)),
            (COPY_BACK, True, 2, 1, (None, True)),
            (COPY_BACK, True, 3, 0, (None, True)),
            (DISPATCH_STEP, True, 1, None, (2.0, False)),
            (DISPATCH_STEP, True, 2, None, (None, True)),
            (CLONE, False, 1, None, (None, False)),
            (CLONE, False, 2, None, (None, False)),
            (CLONE, False, 3, None, (None, False)),
        ],
    )
    def test_unknown_is_tried_again_once(self, schedule, idempotent, attempt, met, expected):
        what = failure(Category.UNKNOWN, idempotent=idempotent)
        verdict = judge(what, schedule=schedule, attempt=attempt, met=met)
        assert (verdict.countdown, verdict.exhausted) == expected
        assert verdict.retry is (verdict.countdown is not None)

    def test_an_unfinished_merge_does_not_end_by_waiting(self):
        assert judge(failure(text="fatal: Exiting because of unfinished merge.")).retry is False
        assert judge(failure(text="fatal: Unable to create '/w/.git/index.lock': File exists.")).retry is True


class TestCountdowns:
    @pytest.mark.parametrize(
        ("schedule", "countdowns"),
        [
            (CLONE, [3.0, 9.0, None]),
            (COPY_BACK, [5.0, 15.0, 30.0, 30.0, None]),
            (DISPATCH_STEP, [2.0, None]),
        ],
    )
    def test_follow_the_table(self, schedule, countdowns):
        what = failure(Category.OPERATION_IN_PROGRESS)
        verdicts = [judge(what, schedule=schedule, attempt=n + 1) for n in range(len(countdowns))]
        assert [verdict.countdown for verdict in verdicts] == countdowns
        assert [verdict.exhausted for verdict in verdicts] == [countdown is None for countdown in countdowns]

    def test_deadlines_are_the_table(self):
        assert (CLONE.deadline, COPY_BACK.deadline) == (300.0, 900.0)

    @pytest.mark.parametrize(
        ("category", "low", "high"),
        [
            (Category.TRANSIENT_NETWORK, 2.4, 3.6),
            (Category.TRANSIENT_SERVER, 2.4, 3.6),
            (Category.TOKEN_REPLICATION, 3.0, 3.0),
            (Category.RATE_LIMITED, 3.0, 3.0),
            (Category.OPERATION_IN_PROGRESS, 3.0, 3.0),
        ],
    )
    def test_jitter_is_for_outages_only(self, category, low, high):
        assert judge(failure(category), chance=0.0).countdown == pytest.approx(low)
        assert judge(failure(category), chance=1.0).countdown == pytest.approx(high)

    def test_token_replication_waits_exactly(self):
        what = failure(text="remote: Repository not found.", credential=Credential.MINTED, credential_age=1.0)
        assert [judge(what, attempt=n, chance=0.9).countdown for n in (1, 2)] == [3.0, 9.0]

    @pytest.mark.parametrize(("remaining", "retry"), [(3.1, True), (3.0, False), (0.0, False), (-1.0, False)])
    def test_must_be_less_than_what_remains(self, remaining, retry):
        verdict = judge(failure(Category.TOKEN_REPLICATION), remaining=remaining)
        assert (verdict.retry, verdict.exhausted) == (retry, not retry)

    @given(
        st.sampled_from(Category),
        st.integers(1, 10),
        st.floats(allow_nan=True),
        st.floats(0, 1, exclude_max=True),
        st.none() | st.floats(),
    )
    def test_never_pass_the_bounds(self, category, attempt, remaining, chance, wait):
        what = failure(category, retry_after=wait, idempotent=True)
        verdict = judge(what, attempt=attempt, remaining=remaining, chance=chance)
        assert verdict.retry is (verdict.countdown is not None)
        assert not (verdict.retry and verdict.exhausted)
        if verdict.countdown is not None:
            assert attempt < CLONE.attempts
            assert 0 <= verdict.countdown < remaining
            assert category is Category.RATE_LIMITED or verdict.countdown <= 9.0 * 1.2


class TestRateLimit:
    @pytest.mark.parametrize(
        ("retry_after", "countdown"),
        [(None, 3.0), (60.0, 60.0), (0.0, 0.0), (-5.0, 0.0), (299.0, 299.0), (300.0, None), (math.inf, None)],
    )
    def test_the_server_knows_best_when_it_fits(self, retry_after, countdown):
        verdict = judge(failure(Category.RATE_LIMITED, retry_after=retry_after))
        assert (verdict.countdown, verdict.exhausted) == (countdown, countdown is None)

    def test_others_keep_their_own_countdown(self):
        assert judge(failure(Category.OPERATION_IN_PROGRESS, retry_after=60.0)).countdown == 3.0


class TestReasonsOfASchedule:
    FULL = failure(text="fatal: write error: No space left on device")

    def test_disk_full_is_tried_again_once_by_copy_back(self):
        assert judge(self.FULL, schedule=COPY_BACK).countdown == 30.0
        second = judge(self.FULL, schedule=COPY_BACK, attempt=2)
        assert (second.retry, second.exhausted) == (False, True)

    def test_once_counts_the_times_it_was_met(self):
        assert judge(self.FULL, schedule=COPY_BACK, attempt=4, met=0).countdown == 30.0
        assert judge(self.FULL, schedule=COPY_BACK, attempt=4, met=1).exhausted

    def test_the_attempts_bound_it_all_the_same(self):
        assert judge(self.FULL, schedule=COPY_BACK, attempt=5, met=0).exhausted

    def test_clone_fails_at_once(self):
        verdict = judge(self.FULL)
        assert (verdict.retry, verdict.exhausted, verdict.reason) == (False, False, "disk_full")

    def test_another_resource_is_final(self):
        assert not judge(failure(exit_code=137), schedule=COPY_BACK).retry


class TestVerdict:
    def test_names_the_rule_that_decided(self):
        verdict = judge(failure(text="Could not resolve host: h"))
        assert (verdict.category, verdict.reason, verdict.rule) == (Category.TRANSIENT_NETWORK, "dns", "dns")

    def test_takes_a_judgement_made_before(self):
        match = Match(Category.TRANSIENT_SERVER, "server_error", "mine")
        assert judge(failure(ended_by=EndedBy.CANCELLED), match=match).rule == "mine"

    def test_cancelled_is_final(self):
        assert judge(failure(ended_by=EndedBy.CANCELLED, text="Connection refused", idempotent=True)).retry is False


def test_a_schedule_without_countdowns_has_one_attempt():
    assert not judge(failure(Category.RATE_LIMITED), schedule=Schedule(attempts=1, countdowns=(), deadline=1.0)).retry
    with pytest.raises(ValueError, match="countdown"):
        Schedule(attempts=2, countdowns=(), deadline=1.0)
