"""A body that dies with its process is run again, and not for ever."""

import time

import pytest

from tests.rig.retrying_rig import Rig, kill
from tests.rig.waiting import until


@pytest.mark.parametrize("plan", ["kill", "exit"])
def test_three_deaths_end_a_task(shared: Rig, plan: str):
    sent = shared.send(plan)
    payload = shared.failure(sent, seconds=40)
    assert payload["code"] == "worker_lost"
    assert payload["cause"] == "worker_lost: stage=begin"
    assert (payload["attempt"], payload["retryable"], payload["exhausted"]) == (1, False, False)
    assert [start["attempt"] for start in shared.starts(sent)] == [1, 1, 1]
    assert shared.settled(sent) == ["resource_exhausted"]
    record = shared.record(sent)
    assert (record.state, record.history) == ("failed", ("1 worker_lost: stage=begin",))
    until(lambda: shared.quiet(sent), what="acknowledged")
    assert len({start["pid"] for start in shared.starts(sent)}) == 3


def test_a_death_costs_no_attempt(shared: Rig):
    sent = shared.send("sleep:1.5")
    (first,) = shared.wait_starts(sent, 1)
    kill(first["pid"])
    assert sent.result.get(timeout=30) == {"attempt": 1}
    starts = shared.starts(sent)
    assert [start["attempt"] for start in starts] == [1, 1]
    assert [start["fence"] for start in starts] == sorted({start["fence"] for start in starts})
    assert shared.record(sent).deaths == 0


def test_a_dead_bodys_time_counts(shared: Rig):
    sent = shared.send("sleep:1.5")
    (first,) = shared.wait_starts(sent, 1)
    until(lambda: time.time() - first["time"] > 1.0, what="a second of work")
    kill(first["pid"])
    assert sent.result.get(timeout=30) == {"attempt": 1}
    second = shared.starts(sent)[1]
    assert 1.0 <= second["spent"] <= second["time"] - first["time"]


def test_a_death_after_a_retry_repeats_that_attempt(shared: Rig):
    sent = shared.send("network", "sleep:1.5", "ok")
    second = shared.wait_starts(sent, 2)[1]
    kill(second["pid"])
    assert sent.result.get(timeout=30) == {"attempt": 2}
    starts = shared.starts(sent)
    assert [start["attempt"] for start in starts] == [1, 2, 2]
    assert [start["carry"] for start in starts] == ["", "left-by-1", "left-by-1"]


def test_memory_error_is_a_failure_of_ours(shared: Rig):
    sent = shared.send("memory")
    payload = shared.failure(sent)
    assert payload["code"] == "clone_failed"
    assert "exception=MemoryError" in payload["cause"]
    after = shared.send("ok")
    assert after.result.get(timeout=20) == {"attempt": 1}


def test_a_child_that_dies_with_its_outcome_recorded_runs_nothing_twice(shared: Rig):
    for plan, state in (("last:child+ok", "SUCCESS"), ("last:child+auth", "FAILURE")):
        sent = shared.send(plan)
        sent.result.get(timeout=30, propagate=False)
        assert sent.result.state == state
        until(lambda sent=sent: shared.quiet(sent), what="acknowledged")
        assert len(shared.starts(sent)) == 1


def test_a_child_that_dies_with_its_retry_recorded_is_retried_once(shared: Rig):
    sent = shared.send("last:child+network", "ok")
    assert shared.sweep_until(lambda: sent.result.state == "SUCCESS" and sent.result.result) == {"attempt": 2}
    assert [start["attempt"] for start in shared.starts(sent)] == [1, 2]
