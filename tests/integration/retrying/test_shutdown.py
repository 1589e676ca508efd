"""A worker that is asked to end loses nothing and leaves nothing."""

import signal
import time

from tests.rig.retrying_rig import Rig, alive
from tests.rig.waiting import until
from tests.rig.worker_process import WorkerProcess
from worker.retrying.task import MAX_DEATHS


def ended(worker: WorkerProcess, children: list[int], seconds: float = 25.0) -> int:
    until(lambda: worker.process.poll() is not None, seconds=seconds, what="the worker has ended")
    until(lambda: not any(alive(pid) for pid in children), seconds=5, what="no child is left")
    return int(worker.process.returncode)


def test_warm_shutdown_ends_the_body_and_acknowledges_it(rig: Rig):
    worker = rig.worker("w1", concurrency=1)
    sent = rig.send("block:2")
    rig.wait_starts(sent, 1)
    children = worker.children()
    worker.signal(signal.SIGTERM)
    assert ended(worker, children) == 0
    assert sent.result.state == "SUCCESS"
    assert rig.quiet(sent)
    rig.worker("w2")
    after = rig.send("ok")
    assert after.result.get(timeout=20) == {"attempt": 1}
    assert len(rig.starts(sent)) == 1


def test_a_waiting_retry_survives_a_warm_shutdown(rig: Rig):
    worker = rig.worker("w1", concurrency=1)
    sent = rig.send("later:3", "ok")
    rig.wait_held(sent)
    children = worker.children()
    worker.signal(signal.SIGTERM)
    ended(worker, children)
    (message,) = rig.queued()
    assert message["headers"]["id"] == sent.id
    rig.worker("w2")
    # No sweep: the broker has it, and its time is kept.
    assert sent.result.get(timeout=20) == {"attempt": 2}
    first, second = rig.starts(sent)
    assert second["time"] - first["time"] >= 2.99


def test_a_body_that_ends_in_the_soft_window_is_a_success(rig: Rig):
    worker = rig.worker("w1", concurrency=1, env={"SANDFERRY_SOFT_SHUTDOWN": "3"})
    sent = rig.send("block:1.5")
    rig.wait_starts(sent, 1)
    children = worker.children()
    worker.signal(signal.SIGQUIT)
    ended(worker, children)
    assert sent.result.state == "SUCCESS"
    assert sent.result.result == {"attempt": 1}
    assert len(rig.starts(sent)) == 1
    assert rig.quiet(sent)


def test_cold_shutdown_hands_the_body_on(rig: Rig):
    # A long lease: what the dead body held must be freed, not waited for.
    worker = rig.worker("w1", concurrency=1, env={"SANDFERRY_SOFT_SHUTDOWN": "0.5", "SANDFERRY_LEASE": "600"})
    sent = rig.send("sleep:60", "ok")
    rig.wait_starts(sent, 1)
    children = worker.children()
    worker.signal(signal.SIGQUIT)
    quit_at = time.time()
    ended(worker, children)
    assert sent.result.state == "PENDING"
    (message,) = rig.queued()
    assert message["headers"]["id"] == sent.id
    rig.worker("w2")
    first, second = rig.wait_starts(sent, 2)
    assert (first["attempt"], second["attempt"]) == (1, 1)
    assert second["time"] - quit_at < 20
    rig.attempts.cancel(sent.run_id)
    assert rig.failure(sent)["code"] == "cancelled"
    assert len(rig.starts(sent)) == 2


def test_cold_shutdowns_are_no_deaths(rig: Rig):
    sent = rig.send("sleep:60")
    for number in range(1, MAX_DEATHS + 1):
        worker = rig.worker(f"w{number}", concurrency=1, env={"SANDFERRY_SOFT_SHUTDOWN": "0.2"})
        rig.wait_starts(sent, number)
        children = worker.children()
        worker.signal(signal.SIGQUIT)
        ended(worker, children)
    rig.worker("last", concurrency=1)
    starts = rig.wait_starts(sent, MAX_DEATHS + 1)
    assert [start["attempt"] for start in starts] == [1, 1, 1, 1]
    assert (rig.record(sent).state, rig.record(sent).deaths) == ("running", 0)


def test_a_waiting_retry_survives_a_cold_shutdown(rig: Rig):
    worker = rig.worker("w1", concurrency=1, env={"SANDFERRY_SOFT_SHUTDOWN": "0.5"})
    sent = rig.send("later:2", "ok")
    rig.wait_held(sent)
    children = worker.children()
    worker.signal(signal.SIGQUIT)
    ended(worker, children)
    rig.worker("w2")
    assert sent.result.get(timeout=20) == {"attempt": 2}
    assert [start["attempt"] for start in rig.starts(sent)] == [1, 2]
