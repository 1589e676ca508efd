"""A run is cancelled, a message revoked or expired: what waits never runs, what runs ends soon."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from tests.rig.retrying_rig import Rig, Sent
from tests.rig.waiting import promptly, until


def assert_cancelled(rig: Rig, sent: Sent) -> dict[str, object]:
    payload = rig.failure(sent)
    assert (payload["code"], payload["category"]) == ("cancelled", "cancelled")
    assert (payload["retryable"], payload["exhausted"]) == (False, False)
    assert rig.record(sent).state == "cancelled"
    return payload


def test_a_running_body_ends_within_three_seconds(shared: Rig):
    sent = shared.send("sleep:50")
    shared.wait_starts(sent, 1)
    begun = time.monotonic()
    shared.attempts.cancel(sent.run_id)
    assert_cancelled(shared, sent)
    assert time.monotonic() - begun < promptly(3.2)
    assert shared.settled(sent) == ["cancelled"]


def test_an_error_that_a_cancel_provokes_is_a_cancel(shared: Rig):
    sent = shared.send("block:3+network")
    shared.wait_starts(sent, 1)
    shared.attempts.cancel(sent.run_id)
    assert_cancelled(shared, sent)
    assert len(shared.starts(sent)) == 1


def test_a_task_of_a_cancelled_run_does_no_work(shared: Rig):
    shared.attempts.cancel("run-cancelled-before")
    sent = shared.send("ok", run_id="run-cancelled-before")
    payload = assert_cancelled(shared, sent)
    assert payload["cause"] == "cancelled: stage=validate"
    assert shared.starts(sent) == []
    assert shared.settled(sent) == ["cancelled"]


def test_a_waiting_retry_of_a_cancelled_run_does_no_work(shared: Rig):
    sent = shared.send("network", "ok")
    shared.wait_state(sent, "waiting")
    shared.attempts.cancel(sent.run_id)
    payload = assert_cancelled(shared, sent)
    assert payload["attempt"] == 2
    assert len(shared.starts(sent)) == 1
    assert shared.settled(sent) == ["cancelled"]


def test_other_runs_go_on(shared: Rig):
    sent, other = shared.send("sleep:50"), shared.send("sleep:2.5")
    shared.wait_starts(sent, 1)
    shared.wait_starts(other, 1)
    shared.attempts.cancel(sent.run_id)
    assert_cancelled(shared, sent)
    assert other.result.get(timeout=20) == {"attempt": 1}


def assert_not_brought_back(rig: Rig, sent: Sent, starts: int) -> None:
    """Sweep until the record was looked at, and see that nothing came of it."""
    rig.sweep_until(lambda: rig.record(sent).envelope is None, what="the record is confirmed")
    assert rig.quiet(sent)
    assert len(rig.starts(sent)) == starts


def test_a_revoked_retry_never_runs(shared: Rig):
    sent = shared.send("later:2", "ok")
    shared.wait_held(sent)
    shared.app.control.revoke(sent.id, reply=True, timeout=5, limit=1)
    until(lambda: sent.result.state == "REVOKED", what="REVOKED")
    record = shared.wait_state(sent, "cancelled")
    assert (record.state, record.history[-1]) == ("cancelled", "2 cancelled")
    assert record.payload["code"] == "cancelled"
    assert_not_brought_back(shared, sent, 1)


def test_a_terminated_body_is_closed(shared: Rig):
    sent = shared.send("block:50")
    shared.wait_starts(sent, 1)
    shared.app.control.revoke(sent.id, terminate=True, reply=True, timeout=5, limit=1)
    until(lambda: sent.result.state == "REVOKED", what="REVOKED")
    shared.wait_state(sent, "cancelled")
    assert_not_brought_back(shared, sent, 1)


def test_an_expired_retry_is_closed(shared: Rig):
    sent = shared.send("later:2", "ok", expires=datetime.now(UTC) + timedelta(seconds=1))
    until(lambda: sent.result.state == "REVOKED", what="REVOKED")
    record = shared.wait_state(sent, "cancelled")
    assert (record.state, record.history[-1]) == ("cancelled", "2 expired")
    assert_not_brought_back(shared, sent, 1)


@pytest.mark.parametrize("expires", [0.5])
def test_the_sweep_closes_what_expired_in_a_dead_workers_hands(rig: Rig, expires: float):
    worker = rig.worker("w1")
    sent = rig.send("later:2", "ok", expires=datetime.now(UTC) + timedelta(seconds=60 * expires))
    rig.wait_held(sent)
    worker.kill_all()
    # Its time has passed meanwhile.
    record = rig.client.hgetall(f"sandferry:attempt:{sent.id}")
    past = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    envelope = rig.record(sent).envelope
    assert envelope is not None
    rig.client.hset(
        f"sandferry:attempt:{sent.id}", "envelope", record["envelope"].replace(envelope["options"]["expires"], past)
    )
    rig.worker("w2")
    rig.sweep_until(sent.result.ready)
    payload = rig.failure(sent)
    assert (payload["code"], payload["category"]) == ("expired", "cancelled")
    assert rig.record(sent).state == "cancelled"
    assert len(rig.starts(sent)) == 1
