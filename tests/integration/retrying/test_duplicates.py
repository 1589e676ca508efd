"""The same message twice: one body, one outcome, and no result that is un-finished."""

import threading
import time

import pytest

from tests.rig.retrying_rig import Rig, Sent
from tests.rig.waiting import promptly, until


class Watcher:
    """Every state a client could have seen."""

    def __init__(self, sent: Sent) -> None:
        self.states: list[str] = []
        self._sent, self._stop, self._backend = sent, threading.Event(), sent.result.app.backend
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.01):
            state = self._backend.get_task_meta(self._sent.id, cache=False)["status"]
            if self.states[-1:] != [state]:
                self.states.append(state)

    def stop(self) -> list[str]:
        self._stop.set()
        self._thread.join(5)
        return self.states


def test_a_duplicate_of_a_live_task_runs_nothing(shared: Rig):
    sent = shared.send("sleep:1")
    shared.wait_starts(sent, 1)
    shared.again(sent, "sleep:1")
    assert sent.result.get(timeout=20) == {"attempt": 1}
    until(lambda: shared.quiet(sent), what="both acknowledged")
    assert len(shared.starts(sent)) == 1
    assert sent.result.state == "SUCCESS"


def test_two_copies_at_once_run_one_body(shared: Rig):
    for _ in range(5):
        sent = shared.send("sleep:0.3")
        shared.again(sent, "sleep:0.3")
        assert sent.result.get(timeout=20) == {"attempt": 1}
        until(lambda sent=sent: shared.quiet(sent), what="both acknowledged")
        assert len(shared.starts(sent)) == 1
        assert shared.settled(sent) == ["ok"]


def test_a_duplicate_during_a_backoff_founds_no_second_line(shared: Rig):
    plan = ("network", "network", "network")
    sent = shared.send(*plan)
    shared.wait_state(sent, "waiting")
    for _ in range(3):
        shared.again(sent, *plan)
    payload = shared.failure(sent)
    assert payload["attempt"] == 3
    until(lambda: shared.quiet(sent), what="all acknowledged")
    assert [start["attempt"] for start in shared.starts(sent)] == [1, 2, 3]
    assert shared.settled(sent) == ["transient_network"]


def test_a_duplicate_of_the_retry_itself_runs_once(shared: Rig):
    plan = ("network", "sleep:0.5", "ok")
    sent = shared.send(*plan)
    shared.wait_state(sent, "waiting")
    stamp = {"sandferry": {"v": 1, "attempt": 2, "carry": ""}}
    for _ in range(2):
        shared.again(sent, *plan, headers=stamp, countdown=1)
    assert sent.result.get(timeout=20) == {"attempt": 2}
    until(lambda: shared.quiet(sent), what="all acknowledged")
    assert [start["attempt"] for start in shared.starts(sent)] == [1, 2]


@pytest.mark.parametrize(("plan", "state"), [(("ok",), "SUCCESS"), (("auth",), "FAILURE")])
def test_a_late_duplicate_of_a_finished_task_changes_nothing(shared: Rig, plan: tuple[str, ...], state: str):
    sent = shared.send(*plan)
    before = sent.result.get(timeout=20, propagate=False)
    until(lambda: shared.quiet(sent), what="acknowledged")
    watcher = Watcher(sent)
    for _ in range(3):
        shared.again(sent, "sleep:1")
    until(lambda: shared.quiet(sent), what="duplicates acknowledged")
    # A message that is acknowledged has had its outcome stored before.
    assert watcher.stop() == [state]
    fresh = shared.app.AsyncResult(sent.id)
    after = fresh.result
    assert (fresh.state, repr(after)) == (state, repr(before))
    if state == "FAILURE":
        assert after.args == before.args
    assert len(shared.starts(sent)) == 1


def test_a_duplicate_of_an_older_attempt_does_not_unfinish(shared: Rig):
    sent = shared.send("network", "auth")
    payload = shared.failure(sent)
    shared.again(sent, "ok")
    until(lambda: shared.quiet(sent), what="acknowledged")
    assert shared.app.AsyncResult(sent.id).result.args[0] == payload
    assert len(shared.starts(sent)) == 2


def test_a_duplicate_within_a_running_later_attempt_is_dropped(shared: Rig):
    sent = shared.send("network", "sleep:1")
    shared.wait_starts(sent, 2)
    begun = time.monotonic()
    shared.again(sent, "network", "sleep:1")
    assert sent.result.get(timeout=20) == {"attempt": 2}
    assert time.monotonic() - begun < promptly(5)
    until(lambda: shared.quiet(sent), what="acknowledged")
    assert [start["attempt"] for start in shared.starts(sent)] == [1, 2]
    assert shared.app.AsyncResult(sent.id).state == "SUCCESS"
