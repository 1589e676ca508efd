"""Which ends Flower is told that it missed, on Celery's own picture of the tasks (`celery.events.state`)."""

import pytest
from celery import states
from celery.events.state import State
from hypothesis import given
from hypothesis import strategies as st

from worker.observability.flowerevents import shown
from worker.observability.flowerwatch import MOST, SILENT, reconcile
from worker.retrying.failed import TaskFailed

NOW = 10_000.0
LATE = NOW - SILENT - 0.001
FAILED = TaskFailed({"cause": "clone_failed: reason=dns"})


def picture(*events, uuid="t", hostname="w1@h"):
    """Celery's state after events, each a (name, epoch seconds) with a clock that counts them."""
    state = State()
    for clock, (name, at) in enumerate(events, 1):
        base = {"type": f"task-{name}", "uuid": uuid, "name": "sandbox.clone", "hostname": hostname, "clock": clock}
        state.event({**base, "timestamp": at, "local_received": at})
    return state


def looked_up(state, status, result=None):
    return reconcile(list(state.tasks.values()), lambda _: {"status": status, "result": result}, NOW)


@pytest.mark.parametrize("last", ["received", "started", "retried"])
@pytest.mark.parametrize(
    ("status", "result", "expected"),
    [
        ("SUCCESS", {"path": "/w"}, {"type": "task-succeeded"}),
        ("FAILURE", FAILED, {"type": "task-failed", "exception": "TaskFailed('clone_failed: reason=dns')"}),
        ("REVOKED", None, {"type": "task-revoked"}),
        ("PENDING", None, None),
        ("STARTED", None, None),
        ("RETRY", FAILED, None),
        ("RECEIVED", None, None),
    ],
)
def test_the_end_that_the_backend_knows(last, status, result, expected):
    state = picture(("received", 1.0), (last, LATE))
    missed = looked_up(state, status, result)
    more = {"uuid": "t", "hostname": "w1@h", "clock": 3, "timestamp": NOW, "local_received": NOW}
    assert missed == ([] if expected is None else [{**expected, **more}])


@pytest.mark.parametrize(
    ("event", "status", "becomes"),
    [
        ("started", "SUCCESS", "SUCCESS"),
        ("started", "FAILURE", "FAILURE"),
        ("retried", "REVOKED", "REVOKED"),
    ],
)
def test_told_to_celerys_state_it_is_over_and_not_looked_up_again(event, status, becomes):
    state = picture(("received", 1.0), (event, LATE))
    (missed,) = looked_up(state, status, FAILED)
    state.event(shown(missed))
    assert state.tasks["t"].state == becomes
    assert state.tasks["t"].exception == ("clone_failed: reason=dns" if status == "FAILURE" else None)
    assert looked_up(state, "SUCCESS") == []


@pytest.mark.parametrize("over", ["succeeded", "failed", "revoked"])
def test_what_flower_shows_as_over_is_left_alone(over):
    assert looked_up(picture(("received", 1.0), (over, LATE)), "SUCCESS") == []


@pytest.mark.parametrize(
    ("at", "count"), [(NOW, 0), (NOW - SILENT, 0), (LATE, 1), (NOW + 60, 0)], ids=["now", "edge", "silent", "ahead"]
)
def test_only_the_silent_are_looked_up(at, count):
    assert len(looked_up(picture(("started", at)), "SUCCESS")) == count


def test_a_task_that_no_worker_has_received():
    (missed,) = looked_up(picture(("sent", LATE), hostname="backend@h"), "SUCCESS")
    assert (missed["type"], missed["hostname"]) == ("task-succeeded", "unknown")


@given(
    st.lists(st.tuples(st.sampled_from(["received", "started", "succeeded"]), st.sampled_from([LATE, NOW]))),
    st.sampled_from(sorted(states.ALL_STATES)),
)
def test_each_silent_open_task_and_no_other_is_asked_for_once(given_tasks, status):
    tasks, asked = [], []
    for number, (event, at) in enumerate(given_tasks):
        tasks += picture((event, at), uuid=str(number)).tasks.values()
    missed = reconcile(tasks, lambda uuid: asked.append(uuid) or {"status": status, "result": None}, NOW)
    silent = [str(n) for n, (event, at) in enumerate(given_tasks) if event != "succeeded" and at == LATE]
    assert asked == silent
    assert [event["uuid"] for event in missed] == (silent if status in ("SUCCESS", "FAILURE", "REVOKED") else [])


def test_a_look_has_a_bound():
    asked = []
    (task,) = picture(("started", LATE)).tasks.values()
    reconcile([task] * (MOST + 7), lambda uuid: asked.append(uuid) or {"status": "PENDING"}, NOW)
    assert len(asked) == MOST == 200
