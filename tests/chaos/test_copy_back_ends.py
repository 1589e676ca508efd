"""A copy-back that is cancelled, whose owner dies for good, or whose disk is full: the record ends, the work stays."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.jobs import QUEUES, Service, service
from tests.rig.waiting import until
from tests.rig.worker_process import WorkerProcess
from worker.demo.broker import embedded
from worker.sandboxes.environment import SEARCH_PATH

STALL = "[ ! -e {flag} ] || {{ : >{flag}.reached; while [ -e {flag} ]; do sleep 0.05; done; }}"


class Yard:
    """A local service in which git stands still, in the sandbox or on the worker, while a flag is there."""

    def __init__(self, made: Service) -> None:
        self.made = made
        self.flags = {where: made.home / f"stall-{where}" for where in ("sandbox", "worker")}
        for where, at in (("sandbox", "pack-objects"), ("worker", "index-pack")):
            folder = made.home / f"bin-{where}"
            folder.mkdir()
            stall = STALL.format(flag=self.flags[where])
            script = f'#!/bin/sh\ncase " $* " in *" {at} "*) {stall} ;; esac\nexec {shutil.which("git")} "$@"\n'
            (folder / "git").write_text(script)
            (folder / "git").chmod(0o755)
        self.start("w1")

    def start(self, name: str, **env: str) -> WorkerProcess:
        path = f"{self.made.home}/bin-worker:{os.environ['PATH']}"
        log = self.made.home / f"{name}.log"
        env = {**self.made.env, "PATH": path, **env}
        worker = WorkerProcess("worker.app", env=env, log=log, queues=QUEUES, concurrency=2, name=name)
        self.made.workers.append(worker)
        return worker.wait_ready()

    def cloned(self, run_id: str, script: str = "printf 'two\\n' > README.md") -> dict:
        url = self.made.public(run_id, {"README.md": b"hello\n"})
        spec = {"env": {"PATH": f"{self.made.home}/bin-sandbox:{SEARCH_PATH}"}}
        sent = self.made.clone(url, run_id=run_id, sandbox={"provider": "local", "spec": spec})
        result = self.made.outcome(sent).result
        self.made.in_sandbox(result, run_id, script)
        return result

    def stalled(self, where: str, result: dict, run_id: str):
        """A copy-back that stands still."""
        flag = self.flags[where]
        flag.touch()
        sent = self.made.copy_back(result, run_id)
        until(flag.with_name(f"{flag.name}.reached").exists, what=f"git stands still in the {where}")
        return sent

    def left(self, result: dict) -> list[str]:
        scratch = Path(result["path"]).parents[2] / "scratch/copy_back"
        return sorted(path.name for path in scratch.iterdir()) if scratch.exists() else []

    def scratch(self) -> list[str]:
        return sorted(path.name for path in (self.made.home / "scratch").iterdir())


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    (tmp_path / "scratch").mkdir()
    with embedded() as url, service(tmp_path, url, LEASE="3", SCRATCH_DIR=str(tmp_path / "scratch")) as made:
        yield Yard(made)


@pytest.mark.parametrize("where", ["sandbox", "worker"])
def test_a_cancel_ends_it_wherever_it_is_and_keeps_the_work(yard: Yard, where: str):
    run_id = f"run-cancel-{where}"
    result = yard.cloned(run_id)
    sent = yard.stalled(where, result, run_id)

    yard.made.services.attempts.cancel(run_id)
    outcome = yard.made.outcome(sent, timeout=20)

    stage = {"sandbox": "capture", "worker": "import"}[where]
    assert outcome.cause == f"cancelled: stage={stage}"
    (operation,) = yard.made.services.operations.of_run(run_id)
    assert (operation.status, operation.cause) == ("cancelled", outcome.cause)
    assert operation.command == f"sandferry recover {run_id}"
    assert (yard.left(result), yard.scratch()) == ([], [])
    assert Path(result["path"], "README.md").read_text() == "two\n"
    assert not list((yard.made.home / "artifacts").glob("sha256/*/*/manifest.json"))


def test_the_record_of_a_dead_owner_is_closed_and_the_work_recovered(yard: Yard):
    result = yard.cloned("run-dead")
    sent = yard.stalled("sandbox", result, "run-dead")
    for worker in yard.made.workers:
        worker.kill_all()
    yard.made.services.client.delete(*yard.made.services.client.keys("sandferry:attempt*"))  # as after a lost server
    yard.start("w2")

    def closed():
        yard.made.send("maintenance.sweep", {"schema": 1})
        (operation,) = yard.made.services.operations.of_run("run-dead")
        return operation if operation.status != "running" else None

    operation = until(closed, seconds=30, pause=0.5, what="the sweep closes the record")

    assert (operation.status, operation.cause) == ("failed", "worker_lost: operation=copy_back reason=worker_lost")
    assert operation.command == "sandferry recover run-dead"
    yard.flags["sandbox"].unlink()
    recovered = recover(yard, "run-dead")
    assert recovered["outcome"] == "succeeded"
    assert recovered["files"] == {"added": 0, "modified": 1, "deleted": 0}
    newest, old = yard.made.services.operations.of_run("run-dead")
    assert (newest.recovers, old.recovered_by, old.command) == (old.operation_id, newest.operation_id, None)
    assert sent.id


def recover(yard: Yard, run_id: str) -> dict:
    command = [Path(sys.executable).with_name("sandferry"), "recover", run_id, "--wait"]
    done = subprocess.run(command, env=yard.made.env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done
    return json.loads(done.stdout[done.stdout.index("{") :])


def test_a_full_disk_of_the_sandbox_is_met_again_once(yard: Yard):
    result = yard.cloned("run-full", "head -c 6000000 /dev/urandom > big.bin")
    scratch = Path(result["path"]).parents[2] / "scratch"
    with small_disk(scratch / "copy_back", "4m"):
        sent = yard.made.copy_back(result, "run-full")
        assert until(lambda: retries(yard, "run-full"), what="a retry") == [("disk_full", 30_000)]
        (operation,) = until(lambda: noted(yard, "run-full"), what="its cause")
        assert operation.cause.startswith("workspace_disk_full: stage=capture")
        assert yard.left(result) == []
        yard.made.services.attempts.cancel("run-full")
        assert Path(result["path"], "big.bin").stat().st_size == 6_000_000
    assert sent.id


@pytest.mark.parametrize("where", ["scratch", "artifacts"])
def test_a_full_disk_of_the_worker_says_so(yard: Yard, where: str):
    run_id = f"run-full-{where}"
    result = yard.cloned(run_id, "head -c 6000000 /dev/urandom > big.bin")
    with small_disk(yard.made.home / where, "4m"):
        sent = yard.made.copy_back(result, run_id)
        assert until(lambda: retries(yard, run_id), what="a retry") == [("disk_full", 30_000)]
        (operation,) = until(lambda: noted(yard, run_id), what="its cause")
        stage = {"scratch": "transfer", "artifacts": "store"}[where]
        assert operation.cause.startswith(f"workspace_disk_full: stage={stage}"), operation.cause
        assert (yard.left(result), yard.scratch()) == ([], [])
        yard.made.services.attempts.cancel(run_id)
    assert sent.id


def retries(yard: Yard, run_id: str) -> list[tuple[str, int]]:
    found = [data for name, data in yard.made.events(run_id) if name == "workspace.copy_back.retrying"]
    return [(data["reason"], data["delay_ms"]) for data in found]


def noted(yard: Yard, run_id: str) -> list:
    return [one for one in yard.made.services.operations.of_run(run_id) if one.attempts]


class small_disk:  # noqa: N801 - reads as what it is
    """A tmpfs of this size at ``path``; needs root."""

    def __init__(self, path: Path, size: str) -> None:
        self.path, self.size = path, size

    def __enter__(self) -> None:
        if os.geteuid() != 0:
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("mounting needs root")
        self.path.mkdir(exist_ok=True)
        options = f"size={self.size},mode=0700"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.path)], check=True)

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "-l", str(self.path)], check=True)
