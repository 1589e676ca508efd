"""Tasks that were closed from outside wait to be settled."""

import time

import pytest

from worker.stores import attempts
from worker.stores.attempts import AttemptStore, Begun
from worker.stores.redis import connect


@pytest.fixture
def store(valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> AttemptStore:
    monkeypatch.setattr(attempts, "DYING", 0.0)
    return AttemptStore(connect(valkey_url), prefix="m", lease=600, record_ttl=3600)


def begun(store: AttemptStore, task_id: str) -> Begun:
    reply = store.begin(task_id, attempt=1, owner="w/1", envelope="{}", run_id="r", delivery="d")
    assert isinstance(reply, Begun)
    return reply


def closed(store: AttemptStore, task_id: str) -> bool:
    return store.close(task_id, state="cancelled", payload={"code": "cancelled"}, cause="cancelled")


def test_what_was_closed_is_handed_out_with_what_its_body_left(store: AttemptStore):
    body = begun(store, "t")
    store.leave("t", fence=body.fence, carry="sealed")
    assert closed(store, "t")

    record = store.next_unsettled()

    assert record is not None
    assert (record.task_id, record.state, record.carry, record.envelope) == ("t", "cancelled", "sealed", {})
    assert (record.unsettled, record.fence) == (True, body.fence + 1)


def test_it_is_put_off_until_it_is_settled(store: AttemptStore):
    begun(store, "t")
    closed(store, "t")
    for times in range(3):
        assert store.next_unsettled() is not None
        due = store._client.zscore("m:unsettled", "t")
        assert due / 1000 - time.time() == pytest.approx(60 * 2**times, abs=5)
        assert store.next_unsettled() is None
        store._client.zadd("m:unsettled", {"t": 1})
    store.settled("t")
    assert store.next_unsettled() is None
    record = store.read("t")
    assert record is not None
    assert not record.unsettled


def test_an_outcome_of_its_body_is_settled_by_its_body(store: AttemptStore):
    body = begun(store, "t")
    store.end_terminal("t", attempt=1, fence=body.fence, state="succeeded", payload={}, cause="", spent=1)
    assert not closed(store, "t")
    assert store.next_unsettled() is None


def test_a_record_that_is_gone_is_skipped(store: AttemptStore):
    for task_id in ("gone", "here"):
        begun(store, task_id)
        closed(store, task_id)
    store._client.delete("m:attempt:gone")
    record = store.next_unsettled()
    assert record is not None
    assert record.task_id == "here"
    assert store._client.zrange("m:unsettled", 0, -1) == ["here"]


def test_one_that_lost_its_lease_leaves_nothing(store: AttemptStore):
    body = begun(store, "t")
    store.disown("t", owner="w/1")
    store.leave("t", fence=body.fence, carry="late")
    record = store.read("t")
    assert record is not None
    assert record.carry == ""


def test_a_body_may_ask_for_another_look_at_what_it_left(store: AttemptStore):
    body = begun(store, "t")
    store.settle_again("t", seconds=0)
    assert store.next_unsettled() is None, "it is not over"
    store.end_terminal("t", attempt=1, fence=body.fence, state="failed", payload={}, cause="c", spent=1)
    store.settle_again("t", seconds=100)

    due = store._client.zscore("m:unsettled", "t")
    assert due / 1000 - time.time() == pytest.approx(100, abs=5)
    record = store.read("t")
    assert record is not None
    assert record.unsettled
    assert store.next_unsettled() is None
    store.settle_again("t", seconds=0)
    found = store.next_unsettled()
    assert found is not None
    assert (found.task_id, found.envelope) == ("t", {})


def test_there_is_no_second_look_after_a_success_or_at_a_task_that_is_forgotten(store: AttemptStore):
    body = begun(store, "t")
    store.end_terminal("t", attempt=1, fence=body.fence, state="succeeded", payload={}, cause="", spent=1)
    for task_id in ("t", "nobody"):
        store.settle_again(task_id, seconds=0)
    assert store.next_unsettled() is None
    assert store.read("nobody") is None
