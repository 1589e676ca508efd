"""Kill -9 of the worker at every step boundary of a copy-back: one delivered copy, a closed record, nothing left."""

import json
import time
import uuid

import pytest

from tests.chaos.kill_points import FILES, POINTS
from tests.doubles.repositories import git
from tests.rig.jobs import Service
from tests.rig.worker_process import WorkerProcess
from worker.sandboxes.base import LABEL_RUN
from worker.sandboxes.deadline import Deadline

STORED = [f"{name.replace('.', '-')}.{when}" for name in FILES for when in ("before", "written", "after")]
BOUNDARIES = [f"{name}.{when}" for name in POINTS for when in ("before", "after")]
EVERY = [*BOUNDARIES, *STORED]
AGENT = "printf 'done\\n' > work.txt && git add -A && git commit -qm work && printf 'more\\n' > more.txt"
TOGETHER = 3
"""Workers at a time; each has one task, and dies with it."""


@pytest.mark.timeout(420)
def test_one_copy_is_delivered_wherever_its_worker_dies(made: Service):
    points = EVERY if made.provider == "local" else [*BOUNDARIES, *STORED[::3]]
    (made.home / "deaths").mkdir()
    start(made, "calm", "worker.app", queues="clone,lifecycle,maintenance", concurrency=2)
    url = made.public("chaos", {"README.md": b"hello\n"})
    git("clone", "-q", "--bare", url, str(made.home / "hub.git"))
    clones = {point: made.clone(url, provider=made.provider, run_id=f"run-{point}") for point in points}
    cloned = {point: made.outcome(sent, timeout=120).result for point, sent in clones.items()}
    for point, result in cloned.items():
        made.in_sandbox(result, f"run-{point}", AGENT)

    sent = {point: send(made, point, result) for point, result in cloned.items()}
    run_out(made, list(sent.values()))

    deaths = {path.name.rpartition(".")[0] for path in (made.home / "deaths").iterdir()}
    assert deaths == set(points), "a point that nobody passes"
    wrong = {point: found for point in points if (found := problems(made, point, sent[point], cloned[point]))}
    assert wrong == {}
    assert list((made.home / "scratch").iterdir()) == []


def send(made: Service, point: str, result: dict):
    request = {
        "schema": 1, "run_id": f"run-{point}", "sandbox": result["sandbox"], "path": result["path"],
        "commit": result["commit"], "baseline": result["baseline"],
        "deliver": {"repository": "hub", "branch": f"to/{point}"}, "after": {"keep": 300},
    }  # fmt: skip
    return made.send("workspace.copy_back", request, task_id=f"{point}.{uuid.uuid4().hex[:8]}")


def run_out(made: Service, sent: list, seconds: float = 300) -> None:
    """Keep workers alive, and the sweep going, until every task has ended."""
    end = time.monotonic() + seconds
    workers: list[WorkerProcess] = []
    number = 0
    while not all(one.ready() for one in sent):
        assert time.monotonic() < end, [one.id for one in sent if not one.ready()]
        workers = [worker for worker in workers if worker.process.poll() is None]
        while len(workers) < TOGETHER:
            number += 1
            app = "tests.chaos.kill_points"
            workers.append(start(made, f"mortal-{number}", app, queues="copy_back", concurrency=1))
        made.send("maintenance.sweep", {"schema": 1})
        time.sleep(0.5)


def start(made: Service, name: str, app: str, *, queues: str, concurrency: int) -> WorkerProcess:
    env = {**made.env, "CHAOS_DEATHS": str(made.home / "deaths")}
    log = made.home / f"{name}.log"
    worker = WorkerProcess(app, env=env, log=log, queues=queues, concurrency=concurrency, name=name)
    made.workers.append(worker)
    return worker


def problems(made: Service, point: str, sent, result: dict) -> list:
    """What is not as it should be after the copy-back of ``point``."""
    run_id, hub = f"run-{point}", made.home / "hub.git"
    outcome = made.outcome(sent)
    operations = made.services.operations.of_run(run_id)
    refs = git("for-each-ref", "--format=%(refname)", f"refs/sandferry/{run_id}", cwd=hub).stdout.split()
    sandbox = made.services.providers.get(made.provider).connect(
        result["sandbox"]["id"], {LABEL_RUN: run_id}, deadline=Deadline.after(30)
    )
    left = made.in_sandbox(result, run_id, f"ls -A {sandbox.layout.scratch}/copy_back 2>/dev/null || true")
    listed = git("ls-tree", "--name-only", f"to/{point}", cwd=hub).stdout
    found = {
        "state": (outcome.state, "SUCCESS"),
        "records": ([operation.status for operation in operations], ["succeeded"]),
        "result": ([operation.result for operation in operations], [outcome.result]),
        "artifacts": (artifacts(made, run_id), [outcome.result.get("artifact", "").rpartition(":")[2]]),
        "rounds": ({ref.split("/")[3] for ref in refs}, {"1", "merged"}),
        "branch": (git("log", "--format=%s", f"to/{point}", cwd=hub).stdout.split("\n")[1:3], ["work", "base"]),
        "files": (listed.split(), ["README.md", "more.txt", "work.txt"]),
        "left": (left, ""),
        "attempt": (made.services.attempts.read(sent.id).state, "succeeded"),
    }  # fmt: skip
    return [{name: pair} for name, pair in found.items() if pair[0] != pair[1]]


def artifacts(made: Service, run_id: str) -> list[str]:
    """The digests of this run's artifacts: directories without a manifest are none."""
    manifests = (made.home / "artifacts").glob("sha256/*/*/manifest.json")
    return [path.parent.name for path in manifests if json.loads(path.read_text()).get("run_id") == run_id]
