"""`honcho start` as the README says it, on the embedded Valkey."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.rig.flower import ROOT
from tests.rig.jobs import Service, service
from tests.rig.ports import later_port
from tests.rig.waiting import until

WORKERS = ("clone", "copy_back", "dispatch", "upkeep")


@dataclass
class Started:
    made: Service
    log: Path
    process: psutil.Popen
    flower_port: int

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def sandferry(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sandferry", *arguments], env=self.made.env, input=stdin, capture_output=True, text=True, timeout=90,
            check=False, cwd=self.made.home,
        )  # fmt: skip


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    home = tmp_path_factory.mktemp("honcho")
    valkey, flower = later_port(), later_port()
    with service(home, f"redis://127.0.0.1:{valkey}/0") as made:
        made.env |= {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT),
            "VALKEY_PORT": str(valkey), "FLOWER_PORT": str(flower), "TMPDIR": str(home),
            "SANDFERRY_FLOWER_USERS_FILE": str(home / "flower-users"),
        }  # fmt: skip
        log = home / "honcho.log"
        with log.open("wb") as out:
            process = psutil.Popen(
                ["honcho", "start", "-f", str(ROOT / "Procfile"), "-p", str(later_port())], env=made.env, cwd=ROOT,
                stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        yielded = Started(made, log, process, flower)
        try:
            until(lambda: len(lines_with(yielded.text(), " ready.")) == len(WORKERS), seconds=90, what=f"ready ({log})")
            yield yielded
        finally:
            family = process.children(recursive=True) if process.is_running() else []
            with contextlib.suppress(psutil.NoSuchProcess):
                process.terminate()
            psutil.wait_procs([process], timeout=15)
            for left in family:
                if left.is_running():
                    left.kill()


def lines_with(text: str, words: str) -> list[str]:
    return [line for line in text.splitlines() if words in line]


def test_serves_a_clone_that_is_sent(started: Started):
    url = started.made.public("sent")
    request = {
        "schema": 1, "run_id": "run-honcho", "sandbox": {"provider": "local", "spec": {}}, "repository": {"url": url},
    }  # fmt: skip
    done = started.sandferry("send", "sandbox.clone", "-", "--wait", stdin=json.dumps(request))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["path"].endswith("/repos/acme/sent")
    assert "sandbox.git.completed" in started.sandferry("runs", "show", "run-honcho").stdout


def test_every_queue_has_a_worker(started: Started):
    queues = started.made.app.control.inspect(timeout=5.0).active_queues()
    assert {queue["name"] for each in queues.values() for queue in each} == {
        "clone", "copy_back", "dispatch", "lifecycle", "maintenance",
    }  # fmt: skip


def test_beat_asks_for_sweeps(started: Started):
    until(lambda: "Task maintenance.sweep" in started.text(), seconds=30, what="a sweep")


def test_flower_and_metrics_answer(started: Started):
    with urllib.request.urlopen(f"http://127.0.0.1:{started.flower_port}/healthcheck", timeout=10) as reply:
        assert reply.read() == b"OK"
    served = [json.loads(line[line.index("{") :])["port"] for line in lines_with(started.text(), '"metrics served"')]
    assert len(served) == len(WORKERS)
    with urllib.request.urlopen(f"http://127.0.0.1:{served[0]}/metrics", timeout=10) as reply:
        assert b"sandferry_since_last_message_seconds" in reply.read()


def test_ends_as_a_whole(started: Started):
    family = started.process.children(recursive=True)
    assert len(family) > 7
    started.process.send_signal(signal.SIGTERM)
    started.process.wait(30)
    _, alive = psutil.wait_procs(family, timeout=10)
    assert alive == []
