"""Whatever is killed in the middle of a clone: the clone comes out right, and nothing is left behind."""

import os
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.doubles import github as faults
from tests.rig import hosted
from tests.rig.jobs import Service, service
from tests.rig.waiting import promptly, until
from worker.demo.broker import embedded
from worker.sandboxes.base import LABEL_RUN
from worker.sandboxes.deadline import Deadline

BIG = {f"file-{n}.bin": os.urandom(20_000) for n in range(40)}


@pytest.fixture(params=["local", "docker", "daytona", "e2b"])
def made(request, tmp_path: Path) -> Iterator[Service]:
    settings = {"LEASE": "3"}
    if request.param in hosted.NAMES:
        with hosted.hosted_service(request.param, tmp_path, **settings) as made:
            made.provider = request.param
            made.tag = uuid.uuid4().hex[:6]
            yield made
        return
    if request.param == "docker":
        engine, image = request.getfixturevalue("docker_engine"), request.getfixturevalue("git_image")
        settings |= {"DOCKER_URL": engine, "DOCKER_IMAGE": image, "DOCKER_NETWORK": "host"}
    with embedded() as url, service(tmp_path, url, **settings) as made:
        made.provider = request.param
        made.tag = uuid.uuid4().hex[:6]  # other tests on this machine clone too
        yield made


def stalled_clone(made: Service, name: str, **more):
    """A clone that stands still in the middle of its first pack."""
    url = made.public(name, BIG)
    stall = stalled_pack(made, name)
    sent = made.clone(url, provider=made.provider, run_id=f"run-{name}", **more)
    until(lambda: stall.seen > 1 and gits(name), what="git is in the middle of a pack")
    return sent, url


def stalled_pack(made: Service, name: str) -> faults.Fault:
    """The second POST fetches (the first asks for refs): it stands still after 100 kB, once."""
    return made.hub.fault(faults.stall_body(100_000), path=rf"/acme/{name}\.git/git-upload-pack", method="POST", skip=1)


def gits(name: str) -> list[psutil.Process]:
    """The git processes that clone ``name``, in containers too: they are the host's processes."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        if line.startswith(("git ", "/usr/lib/git-core/git")) and f"acme/{name}" in line:
            found.append(process)
    return found


def sandbox_files(made: Service, result: dict) -> list[str]:
    sandbox = made.services.providers.get(made.provider).connect(
        result["sandbox"]["id"], {LABEL_RUN: result["run"]}, deadline=Deadline.after(20)
    )
    done = sandbox.run(["ls", "-A", str(Path(result["path"]).parent)], deadline=Deadline.after(20))
    return done.stdout.decode().split()


def test_a_killed_git_is_a_failure_that_says_so_and_the_next_clone_succeeds(made: Service):
    made.start_worker(concurrency=2)
    first = made.outcome(made.clone(made.public("warm-up"), provider=made.provider, run_id="run-git"))
    sandbox = {"provider": made.provider, "id": first.result["sandbox"]["id"]}
    name = f"git-{made.tag}"
    url = made.public(name, BIG)
    stall = stalled_pack(made, name)
    sent = made.clone(url, provider=made.provider, run_id="run-git", sandbox=sandbox)
    until(lambda: stall.seen > 1 and gits(name), what="git is in the middle of a pack")

    for process in gits(name):
        process.send_signal(signal.SIGKILL)
    outcome = made.outcome(sent)

    assert outcome.state == "FAILURE"
    assert outcome.payload["category"] == "resource_exhausted"
    assert "reason=killed" in outcome.cause
    again = made.outcome(made.clone(url, provider=made.provider, run_id="run-git", sandbox=sandbox))
    assert len(again.result["commit"]) == 40
    assert sandbox_files(made, again.result | {"run": "run-git"}) == [name, "warm-up"]


def test_a_killed_child_is_replaced_and_the_clone_succeeds(made: Service):
    worker = made.start_worker(concurrency=1)
    name = f"child-{made.tag}"
    sent, _ = stalled_clone(made, name)

    (child,) = psutil.Process(worker.process.pid).children()
    os.kill(child.pid, signal.SIGKILL)
    outcome = made.outcome(sent)

    assert outcome.state == "SUCCESS", outcome
    assert outcome.result["attempts"] == 1, made.events(f"run-{name}")
    assert made.services.attempts.read(sent.id).deaths == 0
    until(lambda: not gits(name), seconds=50, what="no git is left")  # it gives up a silent server after 30 s
    assert sandbox_files(made, outcome.result | {"run": f"run-{name}"}) == [name]


def test_a_killed_worker_is_replaced_within_a_minute(made: Service):
    worker = made.start_worker("w1", concurrency=1)
    name = f"whole-{made.tag}"
    sent, _ = stalled_clone(made, name)

    worker.kill_all()
    killed = time.monotonic()
    made.start_worker("w2", concurrency=2)

    def swept() -> bool:
        made.send("maintenance.sweep", {"schema": 1})
        return sent.ready()

    until(swept, seconds=50, pause=1, what="the clone is done by another worker")
    outcome = made.outcome(sent)
    assert outcome.state == "SUCCESS", outcome
    assert time.monotonic() - killed < promptly(60)
    until(lambda: not gits(name), seconds=50, what="no git is left")  # it gives up a silent server after 30 s
    assert sandbox_files(made, outcome.result | {"run": f"run-{name}"}) == [name]


def test_a_cancelled_run_ends_its_commands_and_its_sandbox(made: Service):
    made.start_worker(concurrency=1)
    name = f"cancelled-{made.tag}"
    sent, _ = stalled_clone(made, name)

    started = time.monotonic()
    made.services.attempts.cancel(f"run-{name}")
    outcome = made.outcome(sent)

    assert outcome.payload["code"] == "cancelled"
    assert time.monotonic() - started < promptly(10)
    assert gits(name) == []
    assert made.services.sandboxes.of_run(f"run-{name}") == []
    record = made.services.attempts.read(sent.id)
    assert record.state == "cancelled"


def test_two_clones_of_one_run_into_one_sandbox_do_not_meet(made: Service):
    made.start_worker(concurrency=4)
    warm = made.outcome(made.clone(made.public("warm"), provider=made.provider, run_id="run-two"))
    sandbox = {"provider": made.provider, "id": warm.result["sandbox"]["id"]}
    url = made.public("twice", BIG)

    both = [made.clone(url, provider=made.provider, run_id="run-two", sandbox=sandbox) for _ in range(2)]
    outcomes = [made.outcome(sent) for sent in both]

    assert [outcome.state for outcome in outcomes] == ["SUCCESS", "SUCCESS"], outcomes
    assert len({outcome.result["path"] for outcome in outcomes}) == 1
    assert sandbox_files(made, outcomes[0].result | {"run": "run-two"}) == ["twice", "warm"]
