"""Who killed what: when a client hears that a job is over, nothing of it runs on and no token of it is left."""

import os
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.doubles import github as faults
from tests.rig.jobs import Service, service
from tests.rig.waiting import until
from worker.demo.broker import embedded
from worker.demo.github_double import Grant
from worker.sandboxes.base import LABEL_RUN
from worker.sandboxes.deadline import Deadline

TOKEN = "ghs_" + "L" * 36


@pytest.fixture(params=["local", "docker"])
def made(request, tmp_path: Path) -> Iterator[Service]:
    settings = {"LEASE": "3"}
    if request.param == "docker":
        engine, image = request.getfixturevalue("docker_engine"), request.getfixturevalue("git_image")
        settings |= {"DOCKER_URL": engine, "DOCKER_IMAGE": image, "DOCKER_NETWORK": "host"}
    with embedded() as url, service(tmp_path, url, **settings) as made:
        made.provider = request.param
        yield made


def holding(token: str) -> list[int]:
    """Processes of this machine, those in containers too, that have a token in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if token in "\0".join(process.environ().values()):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def hang(made: Service, name: str, run_id: str) -> str:
    """A private repository whose fetches stand still; its URL, with a grant for a token."""
    url = made.private(name)
    made.hub.grants[token_of(run_id)] = Grant(repository=f"acme/{name}")
    made.hub.fault(faults.delay(60), path=rf"/acme/{name}\.git/git-upload-pack", times=None)
    return url


def token_of(run_id: str) -> str:
    return f"{TOKEN}{run_id.removeprefix('run-')}"


def test_no_command_of_a_lost_worker_runs_on(made: Service):
    worker = made.start_worker(concurrency=1)
    run_id = f"run-{uuid.uuid4().hex[:8]}"
    warm = made.outcome(made.clone(made.public("warm"), provider=made.provider, run_id=run_id, after={"keep": 600}))
    url = hang(made, f"slow-{run_id}", run_id)
    sent = made.clone(
        url, run_id=run_id, sandbox=warm.result["sandbox"], credential=made.sealed(run_id, url, token_of(run_id))
    )
    killed: list[int] = []

    def kill() -> bool:
        """Kill the pool's child whenever a body has begun to clone; three deaths are the end."""
        began = [name for name, _ in made.events(run_id)].count("sandbox.git.started") - 1
        if began > len(killed) and holding(token_of(run_id)):
            (child,) = psutil.Process(worker.process.pid).children()
            killed.append(child.pid)
            os.kill(child.pid, signal.SIGKILL)
        return sent.ready()

    until(kill, seconds=60, pause=0.3, what="the task is given up")
    left = holding(token_of(run_id))

    assert made.outcome(sent).payload["code"] == "worker_lost"
    assert len(killed) == 3
    assert left == []
    registry = made.services.sandboxes
    assert [registry.holds(kept.provider, kept.sandbox_id, task_id=sent.id) for kept in registry.of_run(run_id)] == [
        False
    ]


def test_a_revoked_job_leaves_neither_token_nor_sandbox(made: Service):
    made.start_worker(concurrency=1)
    run_id = f"run-{uuid.uuid4().hex[:8]}"
    url = hang(made, f"minted-{run_id}", run_id)
    sent = made.clone(url, provider=made.provider, run_id=run_id, credential={"kind": "github_app"})
    until(lambda: "sandbox.git.started" in [name for name, _ in made.events(run_id)], what="it clones")

    made.app.control.revoke(sent.id, terminate=True, signal="SIGKILL")

    def settled() -> bool:
        made.send("maintenance.sweep", {"schema": 1})
        record = made.services.attempts.read(sent.id)
        return record is not None and record.state == "cancelled" and not record.unsettled

    until(settled, seconds=40, pause=0.5, what="it is settled")
    assert [method for method, *_ in made.hub.requests() if method == "DELETE"] == ["DELETE"]
    provider = made.services.providers.get(made.provider)
    assert provider.find({LABEL_RUN: run_id}, deadline=Deadline.after(30)) == []
    assert made.services.sandboxes.of_run(run_id) == []
    assert [token for token in made.hub.grants if token in made.everything()] == []


def test_a_revoked_job_leaves_a_lent_sandbox_to_its_time(made: Service):
    made.start_worker(concurrency=1)
    run_id = f"run-{uuid.uuid4().hex[:8]}"
    warm = made.outcome(made.clone(made.public("warm"), provider=made.provider, run_id=run_id, after={"keep": 600}))
    url = hang(made, f"lent-{run_id}", run_id)
    sealed = made.sealed(run_id, url, token_of(run_id))
    sent = made.clone(url, run_id=run_id, sandbox=warm.result["sandbox"], credential=sealed, after={"keep": 900})
    until(lambda: holding(token_of(run_id)), what="git has the token")

    made.app.control.revoke(sent.id, terminate=True, signal="SIGKILL")

    def settled() -> bool:
        made.send("maintenance.sweep", {"schema": 1})
        return bool((record := made.services.attempts.read(sent.id)) and not record.unsettled and record.payload)

    until(settled, seconds=40, pause=0.5, what="it is settled")
    assert holding(token_of(run_id)) == []
    (kept,) = made.services.sandboxes.of_run(run_id)
    assert time.time() + 800 < kept.due < time.time() + 901
    assert not made.services.sandboxes.holds(kept.provider, kept.sandbox_id, task_id=sent.id)
