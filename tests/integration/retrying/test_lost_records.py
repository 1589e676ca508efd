"""A record that is gone: the message's own number counts, and a body goes on."""

from tests.rig.retrying_rig import Rig


def forget(rig: Rig, task_id: str) -> None:
    rig.client.delete(f"sandferry:attempt:{task_id}")


def test_between_attempts_the_number_of_the_message_counts(shared: Rig):
    sent = shared.send("later:1.5", "network", "network")
    shared.wait_held(sent)
    forget(shared, sent.id)
    payload = shared.failure(sent)
    assert (payload["attempt"], payload["exhausted"]) == (3, True)
    starts = shared.starts(sent)
    assert [start["attempt"] for start in starts] == [1, 2, 3]
    assert [start["carry"] for start in starts] == ["", "left-by-1", "left-by-2"]


def test_while_a_body_runs_its_outcome_stands(shared: Rig):
    both = [(shared.send("sleep:2.5"), "SUCCESS"), (shared.send("sleep:2.5+auth"), "FAILURE")]
    for sent, _ in both:
        shared.wait_starts(sent, 1)
        forget(shared, sent.id)
    for sent, state in both:
        sent.result.get(timeout=20, propagate=False)
        assert sent.result.state == state
        record = shared.record(sent)
        assert (record.state, record.attempt) == ({"SUCCESS": "succeeded", "FAILURE": "failed"}[state], 1)
        assert len(shared.starts(sent)) == 1


def test_while_a_body_runs_its_retry_is_not_lost(shared: Rig):
    sent = shared.send("block:0.5+network", "ok")
    shared.wait_starts(sent, 1)
    forget(shared, sent.id)
    assert sent.result.get(timeout=20) == {"attempt": 2}
    assert [start["attempt"] for start in shared.starts(sent)] == [1, 2]
