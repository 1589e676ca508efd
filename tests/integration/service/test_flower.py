"""Flower as an operator has it: real processes, its REST API, its pages in a browser."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.rig.flower import ROOT, Flower
from tests.rig.jobs import Service
from tests.rig.waiting import until

TOKEN = "cnryFlowerToken77"
DENIED = "clone_failed: stage=clone category=not_found exit=128 program=git reason=repository_not_found"
IMAGE = ROOT / "docs" / "images" / "flower.png"


@pytest.fixture(scope="module")
def seen(local_service: Service, flower: Flower) -> dict[str, Any]:
    """Jobs whose requests hold a secret, seen from their first event on: by name, their task ids."""
    made = local_service
    until(lambda: "w1@" in json.dumps(flower.api("/workers?status=1")), what="Flower has heard of the worker")
    made.private("closed")
    sent = {"good": made.clone(made.public("good"), run_id="run-good")}
    made.outcome(sent["good"])
    closed = made.hub.git_url("acme", "closed")
    sent["denied"] = made.clone(closed, run_id="run-denied", credential=made.sealed("run-denied", closed, TOKEN))
    made.outcome(sent["denied"])
    sent["invalid"] = made.clone(f"https://user:{TOKEN}@example.invalid/acme/x", run_id="run-invalid")
    made.outcome(sent["invalid"])
    late = made.private("late")
    made.reject("late", 9)
    sent["late"] = made.clone(late, run_id="run-late", credential={"kind": "github_app"})
    until(lambda: any(delay > 5000 for _, delay in made.retries("run-late")), what="the second retry waits")
    until(lambda: shown(flower, sent["late"].id).get("state") == "RETRY" or shown(flower, sent["late"].id).get("eta"),
          what="Flower has heard of it")  # fmt: skip
    return {name: each.id for name, each in sent.items()}


def shown(flower: Flower, task_id: str) -> dict[str, Any]:
    tasks: dict[str, Any] = flower.api("/tasks")
    return tasks.get(task_id, {})


class TestDoor:
    @pytest.mark.parametrize("path", ["/", "/tasks", "/workers", "/api/tasks", "/api/workers", "/api/queues/length"])
    def test_is_shut_without_a_password(self, flower: Flower, path: str):
        assert flower.status(path) == 401
        assert flower.status(path, "sandferry:wrong") == 401
        assert flower.status(path, flower.user) == 200

    def test_password_was_made_and_is_in_no_log(self, flower: Flower, local_service: Service):
        users = local_service.home / "flower-users"
        assert stat.S_IMODE(users.stat().st_mode) == 0o600
        assert re.fullmatch(r"sandferry:[\w-]{24}", flower.user)
        assert str(users) in flower.log.read_text()
        assert flower.user.partition(":")[2] not in flower.log.read_text()

    def test_listens_on_loopback_alone(self, flower: Flower):
        lines = [
            line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()
        ]
        listening = [line[1] for line in lines[1:] if line[3] == "0A" and line[1].endswith(f":{flower.port:04X}")]
        assert listening == [f"0100007F:{flower.port:04X}"]

    @pytest.mark.parametrize(
        "path", ["/api/task/send-task/sandbox.clone", "/api/task/revoke/x", "/api/worker/shutdown/x"]
    )
    def test_only_lets_look(self, flower: Flower, path: str):
        assert flower.status(path, flower.user, "POST") == 403

    @pytest.mark.parametrize("content", [None, "", "nobody\n", ":\n"])
    def test_stays_shut_without_users(self, local_service: Service, tmp_path: Path, content: str | None):
        env = {**local_service.env, "PYTHONPATH": str(ROOT)}
        if content is not None:
            (tmp_path / "users").write_text(content)
            env["SANDFERRY_FLOWER_USERS_FILE"] = str(tmp_path / "users")
        done = subprocess.run(
            [sys.executable, "-P", "-m", "worker.cli", "flower"], env=env, cwd=tmp_path,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith("flower: set SANDFERRY_FLOWER_USERS_FILE")


class TestApi:
    def test_shows_causes(self, flower: Flower, seen: dict[str, Any]):
        denied = until(lambda: (it := shown(flower, seen["denied"])).get("state") == "FAILURE" and it, what="FAILURE")
        assert denied["exception"] == DENIED
        assert shown(flower, seen["invalid"])["exception"].startswith("invalid_request: field=repository_url")
        assert shown(flower, seen["good"])["state"] == "SUCCESS"

    def test_shows_retries_with_their_countdown_and_category(self, flower: Flower, seen: dict[str, Any]):
        late = shown(flower, seen["late"])
        assert "category=token_replication" in late["exception"]
        assert re.search(r"\(attempt [12] of 3, next in \d+ s\)$", late["exception"])
        assert late["retries"] >= 1

    def test_shows_no_arguments(self, flower: Flower, seen: dict[str, Any]):
        tasks = flower.api("/tasks")
        assert set(seen.values()) <= set(tasks)
        assert {(task["args"], task["kwargs"]) for task in tasks.values()} == {("<hidden>", "<hidden>")}
        assert TOKEN not in json.dumps(tasks)
        assert "acme" not in json.dumps({key: {**task, "result": ""} for key, task in tasks.items()})

    def test_shows_no_arguments_of_a_producer_that_sends_them(self, flower: Flower, local_service: Service):
        with local_service.app.events.default_dispatcher() as events:
            events.send(
                "task-sent", uuid="foreign-1", name="sandbox.clone", args=f"('{TOKEN}',)", kwargs=TOKEN, retries=0
            )
        task = until(lambda: shown(flower, "foreign-1"), what="the event")
        assert (task["args"], task["kwargs"]) == ("<hidden>", "<hidden>")
        assert TOKEN not in flower.text("/task/foreign-1")

    def test_tells_the_end_that_it_missed(self, flower: Flower, local_service: Service, seen: dict[str, Any]):
        with local_service.app.events.default_dispatcher() as events:
            # A monitor that came late, or lost the last event: the task looks as if it ran.
            events.send("task-received", uuid=seen["good"], name="sandbox.clone", timestamp=1.0)
            events.send("task-started", uuid=seen["good"])
            events.send("task-started", uuid="never-ends")
        missed = local_service.clone(local_service.public("missed"))
        until(lambda: shown(flower, missed.id).get("state") == "SUCCESS", what="SUCCESS")
        assert shown(flower, seen["good"])["state"] == "SUCCESS"


class TestPages:
    def test_list_of_tasks_is_readable(self, flower: Flower, seen: dict[str, Any]):
        page = flower.page("/tasks")
        for words in (
            DENIED,
            "invalid_request: field=repository_url",
            "category=token_replication",
            "next in",
            "FAILURE",
        ):
            assert words in page, words
        assert TOKEN not in page

    @pytest.mark.parametrize("name", ["good", "denied", "invalid", "late"])
    def test_a_task_shows_its_cause_and_no_arguments(self, flower: Flower, seen: dict[str, Any], name: str):
        page = flower.page(f"/task/{seen[name]}")
        # Arguments, and what a task that is over returned.
        assert page.count("&lt;hidden&gt;") == 2 + (name == "good")
        assert ("clone_failed: stage=clone" in page) == (name in {"denied", "late"})
        assert TOKEN not in page

    def test_worker_shows_no_arguments_and_no_keys(self, flower: Flower, local_service: Service):
        (name,) = [name for name in flower.api("/workers?status=1") if name.startswith("w1@")]
        page = flower.page(f"/worker/{name}")
        assert "sandbox.clone" in page
        assert TOKEN not in page
        assert (local_service.home / "app.pem").read_text().splitlines()[1] not in page

    def test_screenshot(self, flower: Flower, local_service: Service, seen: dict[str, Any], tmp_path: Path):
        """`SANDFERRY_TEST_IMAGES=1` renews the one in the docs."""
        late = local_service.private("later")
        local_service.reject("later", 9)
        sent = local_service.clone(late, credential={"kind": "github_app"})
        until(lambda: shown(flower, sent.id).get("retries") == 1, what="the second attempt waits or runs")
        until(lambda: "next in 9 s" in str(shown(flower, sent.id).get("exception")), what="the second retry is shown")
        file = tmp_path / "flower.png"
        flower.screenshot("/tasks", file)
        assert file.read_bytes().startswith(b"\x89PNG")
        assert file.stat().st_size > 20_000
        if os.environ.get("SANDFERRY_TEST_IMAGES"):
            IMAGE.parent.mkdir(exist_ok=True)
            IMAGE.write_bytes(file.read_bytes())
        assert IMAGE.is_file()
