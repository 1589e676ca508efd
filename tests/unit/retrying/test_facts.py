import pytest
from celery.exceptions import SoftTimeLimitExceeded

from worker.failures.model import Cancelled, Category, EndedBy, Failure, InvalidRequest, OperationFailed
from worker.retrying.attempt import Attempt
from worker.retrying.facts import chain, facts
from worker.sandboxes.deadline import Deadline
from worker.stores.redis import StoreError


@pytest.fixture
def attempt() -> Attempt:
    return Attempt(
        task_id="t", run_id="r", operation="clone", number=1, attempts=3, fence=1, spent=0, first_seen=0, carry="",
        deadline=Deadline.after(60), stage="checkout", events=None,
    )  # fmt: skip


def caused(outer: BaseException, inner: BaseException) -> BaseException:
    outer.__cause__ = inner
    return outer


def during(outer: BaseException, inner: BaseException) -> BaseException:
    outer.__context__ = inner
    return outer


class TestChain:
    def test_walks_causes_and_contexts_once(self):
        a, b, c = ValueError("a"), KeyError("b"), OSError("c")
        a.__cause__, a.__context__, b.__context__ = b, c, c
        assert list(chain(a)) == [a, b, c]

    def test_ends_in_a_circle(self):
        a, b = ValueError("a"), KeyError("b")
        a.__cause__, b.__context__ = b, a
        assert list(chain(a)) == [a, b]

    def test_ends_in_a_circle_of_one(self):
        a = ValueError("a")
        a.__context__ = a
        assert list(chain(a)) == [a]

    def test_is_linear_in_a_long_chain(self):
        link = first = ValueError(0)
        for number in range(1, 5000):
            link.__context__ = link = ValueError(number)
        assert len(list(chain(first))) == 5000


class TestOutranking:
    @pytest.mark.parametrize(
        "exc",
        [
            SoftTimeLimitExceeded(),
            caused(RuntimeError("sdk"), SoftTimeLimitExceeded()),
            during(OSError("closed"), SoftTimeLimitExceeded()),
            during(ValueError(), caused(KeyError(), SoftTimeLimitExceeded())),
            during(OperationFailed(Failure(operation="clone", stage="clone", exit_code=1)), SoftTimeLimitExceeded()),
            during(InvalidRequest("ref", "missing"), SoftTimeLimitExceeded()),
            caused(SoftTimeLimitExceeded(), Cancelled()),
        ],
    )
    def test_soft_limit_anywhere(self, attempt, exc):
        found = facts(exc, attempt)
        assert (found.ended_by, found.reason, found.category) == (EndedBy.DEADLINE, "soft_time_limit", None)
        assert (found.operation, found.stage, found.text) == ("clone", "checkout", "")

    @pytest.mark.parametrize(
        "exc", [Cancelled(), caused(RuntimeError("sdk"), Cancelled()), during(OSError(), Cancelled())]
    )
    def test_cancel_anywhere(self, attempt, exc):
        found = facts(exc, attempt)
        assert (found.category, found.reason, found.ended_by) == (Category.CANCELLED, "cancelled", EndedBy.CANCELLED)

    def test_a_cancelled_deadline_explains_any_error(self, attempt):
        attempt.deadline.cancel.set()
        assert facts(OSError("pipe"), attempt).category is Category.CANCELLED

    def test_a_suppressed_context_counts_too(self, attempt):
        exc = during(OSError("closed"), SoftTimeLimitExceeded())
        exc.__suppress_context__ = True
        assert facts(exc, attempt).reason == "soft_time_limit"


class TestKinds:
    def test_a_step_that_knows_is_believed(self, attempt):
        failure = Failure(operation="mint", stage="mint", http_status=404)
        assert facts(OperationFailed(failure), attempt) is failure

    def test_a_request(self, attempt):
        found = facts(InvalidRequest("ref", "missing"), attempt)
        assert (found.category, found.field_name, found.reason) == (Category.INVALID_REQUEST, "ref", "missing")

    def test_the_record_store(self, attempt):
        found = facts(StoreError("secret"), attempt)
        assert (found.category, found.reason, found.text) == (Category.TRANSIENT_SERVER, "store_unreachable", "")

    def test_a_stranger_keeps_its_text_private(self, attempt):
        found = facts(ZeroDivisionError("cnry"), attempt)
        assert (found.exception, found.text, found.category) == ("builtins.ZeroDivisionError", "cnry", None)
        assert "cnry" not in repr(found)

    def test_a_providers_exception_is_the_drivers_to_read(self, attempt):
        class Provider:
            def facts(self, exc, *, operation, stage):
                return Failure(operation=operation, stage=stage, provider="docker", text=str(exc))

        attempt.provider = Provider()
        found = facts(RuntimeError("x"), attempt)
        assert (found.provider, found.operation, found.stage, found.text) == ("docker", "clone", "checkout", "x")
