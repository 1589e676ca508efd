"""What a person reads of an event."""

from worker.observability.timeline import line
from worker.stores.events import Event


def test_a_cause_ends_the_line_and_no_word_is_there_twice():
    data = {
        "task_id": "t", "attempt": 1, "stage": "receipt", "category": "unknown", "reason": "sandbox_lost",
        "code": "outcome_unknown", "cause": "outcome_unknown: stage=dispatch reason=sandbox_lost",
    }  # fmt: skip
    assert line(Event("1-0", 12.5, "tool.dispatch.failed", data), 10.0) == (
        "   +2.500s  tool.dispatch.failed     attempt=1 stage=receipt category=unknown "
        "outcome_unknown: stage=dispatch reason=sandbox_lost"
    )


def test_an_event_without_a_cause_shows_its_data():
    event = Event("1-0", 10.0, "sandbox.ready", {"task_id": "t", "provider": "local", "cause": None})
    assert line(event, 10.0) == "   +0.000s  sandbox.ready            provider=local"
