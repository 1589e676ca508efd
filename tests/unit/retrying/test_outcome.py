import json
import pickle

import pytest

from worker.failures.cause import Cause
from worker.failures.model import Category, Failure, Verdict
from worker.retrying.causes import QUEUE_WAIT, WORKER_LOST, cause_of, not_started
from worker.retrying.failed import SCHEMA, TaskFailed
from worker.retrying.outcome import closed, payload

RETRY = Verdict(category=Category.TRANSIENT_NETWORK, reason="dns", retry=True, countdown=3.0)
FINAL = Verdict(category=Category.AUTH_DENIED, reason="auth_denied", retry=False)
EXHAUSTED = Verdict(category=Category.TRANSIENT_NETWORK, reason="dns", retry=False, exhausted=True)


class TestPayload:
    @pytest.mark.parametrize(
        ("verdict", "retryable", "exhausted", "next_eta"),
        [(RETRY, True, False, 103.0), (FINAL, False, False, None), (EXHAUSTED, True, True, None)],
    )
    def test_says_what_follows(self, verdict, retryable, exhausted, next_eta):
        cause = Cause.of("clone_failed", reason=verdict.reason)
        found = payload(cause, verdict, attempt=2, attempts=3, run_id="r", now=100.0, remaining=20.0)
        assert found == {
            "schema": SCHEMA,
            "code": "clone_failed",
            "category": str(verdict.category),
            "cause": str(cause),
            "attempt": 2,
            "attempts": 3,
            "retryable": retryable,
            "exhausted": exhausted,
            "next_eta": next_eta,
            "deadline_at": 120.0,
            "run_id": "r",
        }

    def test_of_a_task_closed_from_outside_has_the_same_keys(self):
        cause = Cause.of("hard_timeout")
        outside = closed(cause, Category.TIMEOUT_AMBIGUOUS, run_id="r")
        inside = payload(cause, FINAL, attempt=1, attempts=1, run_id="r", now=0, remaining=0)
        assert list(outside) == list(inside)
        assert (outside["attempt"], outside["next_eta"], outside["retryable"]) == (None, None, False)


class TestTaskFailed:
    BODY = payload(Cause.of("clone_failed", reason="dns"), RETRY, attempt=1, attempts=3, run_id="r", now=1, remaining=2)

    def test_survives_pickle(self):
        again = pickle.loads(pickle.dumps(TaskFailed(self.BODY)))
        assert type(again) is TaskFailed
        assert again.args == (self.BODY,)

    def test_survives_json(self):
        again = TaskFailed(*json.loads(json.dumps(TaskFailed(self.BODY).args)))
        assert again.payload == self.BODY

    def test_is_its_cause_line(self):
        assert str(TaskFailed(self.BODY)) == "clone_failed: reason=dns"
        shown = "TaskFailed('clone_failed: reason=dns', attempt=1, attempts=3, next_eta=4.0)"
        assert repr(TaskFailed(self.BODY)) == shown

    def test_of_a_stranger_says_nothing(self):
        assert str(TaskFailed({})) == ""


class TestCause:
    def test_of_a_request_names_the_field(self):
        failure = Failure(
            operation="clone", stage="validate", category=Category.INVALID_REQUEST, reason="missing", field_name="ref"
        )
        verdict = Verdict(category=Category.INVALID_REQUEST, reason="missing", retry=False)
        assert str(cause_of("clone_failed", failure, verdict)) == "invalid_request: field=ref reason=missing"

    def test_of_a_cancel_names_the_stage(self):
        failure = Failure(operation="clone", stage="checkout", category=Category.CANCELLED, reason="cancelled")
        verdict = Verdict(category=Category.CANCELLED, reason="cancelled", retry=False)
        assert str(cause_of("clone_failed", failure, verdict)) == "cancelled: stage=checkout"

    @pytest.mark.parametrize("reason", [WORKER_LOST, QUEUE_WAIT])
    def test_of_a_task_that_never_started_has_a_code_of_its_own(self, reason):
        failure = not_started("clone", reason).failure
        verdict = Verdict(category=Category.RESOURCE_EXHAUSTED, reason=reason, retry=False)
        assert str(cause_of("clone_failed", failure, verdict)) == f"{reason}: stage=begin"

    def test_of_a_command_carries_structure_and_no_text(self):
        failure = Failure(
            operation="clone", stage="clone", exit_code=128, signal=None, program="git", http_status=503,
            text="fatal: secret", exception="httpx.ConnectError", errno="ENOSPC",
        )  # fmt: skip
        verdict = Verdict(category=Category.TRANSIENT_SERVER, reason="server_error", retry=True, countdown=1)
        assert str(cause_of("clone_failed", failure, verdict)) == (
            "clone_failed: stage=clone category=transient_server exit=128 http=503 errno=ENOSPC program=git "
            "exception=ConnectError reason=server_error"
        )
