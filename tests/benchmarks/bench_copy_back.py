"""`workspace.copy_back` on Docker: the whole job, against moving all of the workspace, and how its time grows.

A workspace here is `data/` with random files in a repository whose one commit holds them, as after a clone.
"""

import statistics
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

import psutil

from tests.benchmarks.measure import docker_service, row, seconds
from tests.rig.jobs import Service
from worker.sandboxes.base import LABEL_RUN
from worker.sandboxes.deadline import Deadline
from worker.snapshots.baseline import baseline

RUN = "run-bench"
ROUNDS = 3
MEGABYTE = 1_000_000

# Files of $2 bytes each, $3 of them, a thousand a directory, of random content.
_MAKE = """
mkdir -p "$1/data" && cd "$1"
head -c "$(($2 * $3))" /dev/urandom | split -b "$2" -a 6 -d --filter='
    d=${FILE#x}; d=data/${d%???}; mkdir -p "$d" && cat >"$d/$FILE"' -
git init -q -b main . && git config core.compression 0 && git config gc.auto 0
git add . && git commit -qm base
git repack -adq --window=0
"""
# New content for the first files of the workspace, $2 bytes of it in all, a file of $3 bytes at a time.
_CHANGE = """
cd "$1"
find data -type f | sort | head -n "$(($2 / $3))" | while IFS= read -r f; do head -c "$3" /dev/urandom >"$f"; done
"""
# All of the workspace $1 as one commit in the bundle $2; nothing of it stays in the repository.
_BUNDLE = """
cd "$1"
mkdir -p "$2.git/objects/info" "$2.git/refs" && cp .git/HEAD .git/config .git/index "$2.git"
export GIT_DIR="$2.git" GIT_WORK_TREE="$PWD"
git add -A
git update-ref refs/heads/main "$(git commit-tree "$(git write-tree)" -m after)"
git bundle create -q "$2" main
rm -rf "$2.git"
"""


@dataclass
class Memory:
    """The most that a worker's children had, over what they had when idle; bytes. The gits they start included."""

    parent: int
    idle: int = 0
    most: int = 0
    _over: threading.Event = field(default_factory=threading.Event)

    def now(self) -> int:
        total = 0
        for process in psutil.Process(self.parent).children(recursive=True):
            try:
                # Between its fork and its exec a git to be is its parent once more, in the same memory.
                if process.ppid() == self.parent or not process.name().startswith("python"):
                    total += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        return total

    def __enter__(self) -> Self:
        self.idle = self.most = self.now()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            self.most = max(self.most, self.now())


@dataclass
class Yard:
    """A sandbox and the workspaces in it."""

    made: Service
    engine: str
    sandbox: Any

    def sh(self, script: str, *args: object) -> str:
        argv = ["sh", "-euc", script, "sh", *map(str, args)]
        env = {f"GIT_{who}_{what}": "bench" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        done = self.sandbox.run(argv, deadline=Deadline.after(600), env=env)
        assert done.ok, (done.stdout, done.stderr)
        return done.stdout.decode()

    def workspace(self, name: str, *, size: int, count: int) -> dict[str, Any]:
        """As a clone leaves it: ``count`` files of ``size`` bytes, and a baseline."""
        path = f"{self.sandbox.layout.repos}/bench/{name}"
        self.sh(_MAKE, path, size, count)
        commit = self.sh('git -C "$1" rev-parse HEAD', path).strip()
        clones = f"{self.sandbox.layout.scratch}/clones/{name}"
        self.sh('mkdir -p "$1"', clones)
        tree = baseline(self.sandbox, path, f"{clones}/baseline.git", Deadline.after(600))
        return {
            "sandbox": {"provider": "docker", "id": self.sandbox.id}, "path": path, "commit": commit, "baseline": tree,
        }  # fmt: skip

    def change(self, workspace: dict[str, Any], size: int, each: int) -> None:
        self.sh(_CHANGE, workspace["path"], size, each)

    def copy_back(self, workspace: dict[str, Any]) -> None:
        outcome = self.made.outcome(self.made.copy_back(workspace, RUN), timeout=600)
        assert outcome.result.get("outcome") == "succeeded", outcome

    def times(self, workspace: dict[str, Any]) -> float:
        return statistics.median(seconds(partial(self.copy_back, workspace)) for _ in range(ROUNDS))

    def forget(self, workspace: dict[str, Any]) -> None:
        self.sh('rm -rf "$1" "$2"', workspace["path"], f"{self.sandbox.layout.scratch}/clones")
        subprocess.run(["rm", "-rf", str(self.made.home / "artifacts")], check=True)

    def docker_cp(self, workspace: dict[str, Any]) -> None:
        """The workspace with its `.git`: commits, branches and stashes are work too."""
        with self.copied(workspace["path"]):
            pass

    def by_hand(self, workspace: dict[str, Any]) -> None:
        """The same content as plain git carries it: a commit, a bundle, `docker cp`, a clone."""
        bundle = f"{self.sandbox.layout.scratch}/by-hand"
        self.sh(_BUNDLE, workspace["path"], bundle)
        with self.copied(bundle) as file, tempfile.TemporaryDirectory() as target:
            subprocess.run(["git", "clone", "-q", "--bare", str(file), f"{target}/clone"], check=True)

    @contextmanager
    def copied(self, path: str) -> Iterator[Path]:
        """A file or directory of the container, brought by `docker cp`."""
        with tempfile.TemporaryDirectory() as target:
            place = f"{self.sandbox.id}:{path}"
            subprocess.run(["docker", "-H", self.engine, "cp", "-q", place, f"{target}/it"], check=True)
            yield Path(target) / "it"

    def tar(self, workspace: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory() as target, (Path(target) / "data.tar").open("wb") as file:
            command = ["docker", "-H", self.engine, "exec", self.sandbox.id, "tar", "-C", workspace["path"], "-cf", "-"]
            subprocess.run([*command, "data"], check=True, stdout=file)


def benchmarks() -> Iterator[dict[str, Any]]:
    with docker_service() as (made, engine):
        worker = made.start_worker(concurrency=1)
        made.public("seed")
        seed = made.outcome(made.clone(made.hub.git_url("acme", "seed"), provider="docker", run_id=RUN)).result
        provider = made.services.providers.get("docker")
        sandbox = provider.connect(seed["sandbox"]["id"], {LABEL_RUN: RUN}, deadline=Deadline.after(60))
        yard = Yard(made, engine, sandbox)
        yard.copy_back(seed)  # what is imported on first use is no growth
        yard.sh('rm -f "$1"/*', sandbox.layout.workspace)  # a link there would be a loss named `outside`
        try:
            with Memory(worker.process.pid) as memory:
                yield from _one_gigabyte(yard)
                yield from _everything(yard)
                yield from _growth(yard)
            above = (memory.most - memory.idle) / MEGABYTE
            yield row("copy_back_memory", above, 100, "MB above idle", 1.0)
        finally:
            sandbox.release(deadline=Deadline.after(60))


def _one_gigabyte(yard: Yard) -> Iterator[dict[str, Any]]:
    """1 GB in 1000 files, one of them changed; and what a change of 10 and 100 MB costs more."""
    made = yard.workspace("one", size=MEGABYTE, count=1000)
    yard.change(made, MEGABYTE, MEGABYTE)
    ours = yard.times(made)
    peer = statistics.median(seconds(partial(yard.docker_cp, made)) for _ in range(ROUNDS))
    yield row("copy_back_1gb_1mb_changed", ours, peer, "s", 0.08)
    for size in (10, 100):
        yard.change(made, size * MEGABYTE, MEGABYTE)
        yield row(f"copy_back_{size}mb_over_1mb_changed", yard.times(made), ours, "s", size)
    yard.forget(made)


def _everything(yard: Yard) -> Iterator[dict[str, Any]]:
    """200 MB in 200 files, all of them changed."""
    made = yard.workspace("all", size=MEGABYTE, count=200)
    yard.change(made, 200 * MEGABYTE, MEGABYTE)
    peer = statistics.median(seconds(partial(yard.tar, made)) for _ in range(ROUNDS))
    ours = yard.times(made)
    yield row("copy_back_200mb_all_changed", ours, peer, "s", 1.5)
    peer = statistics.median(seconds(partial(yard.by_hand, made)) for _ in range(ROUNDS))
    yield row("copy_back_200mb_over_git_by_hand", ours, peer, "s", 1.5)
    yard.forget(made)


def _growth(yard: Yard) -> Iterator[dict[str, Any]]:
    """With the number of files at most in proportion; with the bytes that did not change not at all."""
    taken = {}
    for count in (1_000, 20_000, 100_000):
        made = yard.workspace(f"files-{count}", size=1000, count=count)
        yard.change(made, MEGABYTE, 1000)
        taken[count] = yard.times(made)
        yard.forget(made)
    for count in (20_000, 100_000):
        yield row(f"copy_back_{count // 1000}k_over_1k_files", taken[count], taken[1_000], "s", count / 1000)
    for size in (100, 1000, 2000):
        made = yard.workspace(f"bytes-{size}", size=size * 1000, count=1000)
        yard.change(made, 2 * MEGABYTE, size * 1000)
        taken[size] = yard.times(made)
        yard.forget(made)
    yield row("copy_back_2gb_over_100mb", taken[2000], taken[100], "s", 1.3)
