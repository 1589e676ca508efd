"""Messages that are none: refused for good, never written down, and the worker goes on."""

import json
from typing import Any

import pytest
from kombu import Producer

from tests.rig.canary import CANARY
from tests.rig.retrying_rig import Rig
from tests.rig.waiting import until
from worker.retrying.failed import TaskFailed
from worker.retrying.message import DEEPEST, malformed, too_deep

GOOD_BODY: list[Any] = [[], {"request": {}}, {}]
HEADERS: dict[str, Any] = {"task": "probe.run", "id": "malformed-1"}
BAD: dict[str, tuple[Any, Any]] = {
    "an object": (HEADERS, {"x": CANARY}),
    "an object with args": (HEADERS, {"args": CANARY}),
    "a short list": (HEADERS, [CANARY]),
    "a list that says args": (HEADERS, ["args", CANARY, {}]),
    "a number": (HEADERS, 7),
    "null": (HEADERS, None),
    "a text": (HEADERS, CANARY),
    "kwargs a list": (HEADERS, [[], [CANARY], {}]),
    "args an object": (HEADERS, [{"a": CANARY}, {}, {}]),
    "embed a list": (HEADERS, [[], {}, [CANARY]]),
    "no id": ({"task": "probe.run"}, GOOD_BODY),
    "id an object": ({**HEADERS, "id": {"a": CANARY}}, GOOD_BODY),
    "task a list": ({**HEADERS, "task": [CANARY]}, GOOD_BODY),
    "no task": ({"id": "x"}, {"task": CANARY}),
    "no headers": ({}, GOOD_BODY),
    "limits a text": ({**HEADERS, "timelimit": CANARY}, GOOD_BODY),
    "limits of texts": ({**HEADERS, "timelimit": [CANARY, CANARY]}, GOOD_BODY),
    "retries a text": ({**HEADERS, "retries": CANARY}, GOOD_BODY),
    "eta a number": ({**HEADERS, "eta": 7}, GOOD_BODY),
    "eta no time": ({**HEADERS, "eta": CANARY}, GOOD_BODY),
    "expires no time": ({**HEADERS, "expires": CANARY}, GOOD_BODY),
    "stamps a text": ({**HEADERS, "stamps": CANARY, "stamped_headers": [CANARY]}, GOOD_BODY),
    "shadow a list": ({**HEADERS, "shadow": [CANARY]}, GOOD_BODY),
    "headers too deep": ({**HEADERS, "more": json.loads("[" * 300 + "]" * 300)}, GOOD_BODY),
}


def publish(rig: Rig, headers: dict[str, Any], body: Any, **options: Any) -> None:
    with rig.app.connection_for_write() as connection:
        Producer(connection.channel()).publish(
            body, exchange="", routing_key="probe", headers=headers, **{"serializer": "json", **options}
        )


def refusals(rig: Rig) -> list[str]:
    return [line for line in rig.workers[0].text().splitlines() if '"message not handled"' in line]


@pytest.mark.parametrize(("headers", "body"), BAD.values(), ids=BAD)
def test_it_is_refused_and_the_worker_goes_on(shared: Rig, headers: dict[str, Any], body: Any):
    before = len(refusals(shared))

    publish(shared, headers, body)

    until(lambda: len(refusals(shared)) == before + 1, what="it is refused")
    assert shared.send("ok").result.get(timeout=20) == {"attempt": 1}
    until(lambda: not shared.broker.hlen("unacked"), what="it is acknowledged")
    assert shared.queued() == []
    assert CANARY not in shared.workers[0].text()


@pytest.mark.parametrize("content", ["application/json", "application/x-python-serialize"])
def test_what_cannot_be_decoded(shared: Rig, content: str):
    before = len(refusals(shared))

    publish(shared, HEADERS, f"{{{CANARY}".encode(), serializer=None, content_type=content, content_encoding="utf-8")

    until(lambda: len(refusals(shared)) == before + 1, what="it is refused")
    assert shared.send("ok").result.get(timeout=20) == {"attempt": 1}
    assert CANARY not in shared.workers[0].text()


@pytest.mark.parametrize(
    ("headers", "payload", "fault"),
    [
        (HEADERS, GOOD_BODY, None),
        (HEADERS, [[], {}, None], None),
        ({**HEADERS, "timelimit": [None, 3.5], "retries": 2, "eta": None, "group": None}, GOOD_BODY, None),
        (None, GOOD_BODY, "headers"),
        ({**HEADERS, "id": "x" * 256}, GOOD_BODY, "id"),
        ({**HEADERS, "id": ""}, GOOD_BODY, "id"),
        ({**HEADERS, "retries": True}, GOOD_BODY, "retries"),
        ({**HEADERS, "timelimit": [1]}, GOOD_BODY, "timelimit"),
        (HEADERS, [[], {}], "body"),
        (HEADERS, "[]{}", "body"),
    ],
)
def test_what_is_malformed(headers: Any, payload: Any, fault: str | None):
    assert malformed(headers, payload) == fault


def test_a_record_of_another_kind_is_no_outage(shared: Rig):
    """The slot is not held for the patience with an outage, and the message does not come back for ever."""
    shared.client.set("sandferry:attempt:wrong-type", "a text, no hash")
    sent = shared.send("ok", task_id="wrong-type")
    payload = shared.failure(sent, seconds=10)
    assert payload["code"] == "internal_error"
    until(lambda: shared.quiet(sent), what="it is acknowledged")
    assert shared.starts(sent) == []


@pytest.mark.parametrize("depth", [200, 500, 900])
@pytest.mark.parametrize("compression", [None, "zlib"])
def test_a_request_that_is_nested_too_deep_is_answered_and_the_worker_goes_on(
    shared: Rig, depth: int, compression: str | None
):
    before = shared.workers[0].process.pid
    deep = json.loads('{"a":[' * (depth // 2) + f'"{CANARY}"' + "]}" * (depth // 2))

    sent = shared.app.send_task("probe.run", kwargs={"request": deep}, queue="probe", compression=compression)

    with pytest.raises(TaskFailed) as caught:
        sent.get(timeout=20)
    assert str(caught.value) == "invalid_request: field=request reason=wrong_type"
    assert shared.send("ok").result.get(timeout=20) == {"attempt": 1}
    assert shared.workers[0].process.poll() is None
    assert shared.workers[0].process.pid == before
    assert CANARY not in shared.workers[0].text()


@pytest.mark.parametrize(
    ("text", "deep"),
    [
        ("7", False),
        ("[" * DEEPEST + "]" * DEEPEST, False),
        ("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), True),
        ('{"a":' * (DEEPEST + 1) + "{}" + "}" * (DEEPEST + 1), True),
        (json.dumps([[["a"] * 1000] * 100] * 10), False),
    ],
)
def test_what_is_too_deep(text: str, deep: bool):
    assert too_deep(json.loads(text)) is deep


def test_a_name_that_the_sender_chose_is_not_shown(shared: Rig):
    sent = shared.app.send_task("probe.run", kwargs={"request": {}}, queue="probe", shadow=CANARY)
    with pytest.raises(TaskFailed):
        sent.get(timeout=20)
    until(lambda: f"Task probe.run[{sent.id}] raised" in shared.workers[0].text(), what="the line of its end")
    assert CANARY not in shared.workers[0].text()
