"""A worker app whose copy-backs die at a chosen point, once: the whole worker, by SIGKILL.

The id of a task says where: ``<name>.<before|after>.<anything>``. What died is noted in ``CHAOS_DEATHS``, a
directory, so that the next body passes the point.
"""

import os
import signal
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any

from tasks.copy_back import steps, task
from worker.app import app
from worker.imports import collect
from worker.retrying.task import ClassifiedTask
from worker.stores.artifacts import ArtifactStore

__all__ = ["app"]

_running: ContextVar[str] = ContextVar("running", default="")
POINTS: dict[str, tuple[Any, str]] = {
    "record": (task.CopyBackTask, "_begin"),
    "acquire": (task, "acquire"),
    "capture": (steps, "capture"),
    "transfer": (steps, "fetch_capture"),
    "bundle": (collect, "fetch_file"),
    "discard": (steps, "discard"),
    "import": (steps, "import_part"),
    "changes": (steps, "changes"),
    "store": (ArtifactStore, "put"),
    "deliver": (steps, "deliver_refs"),
    "merge": (steps, "move_branch"),
    "finish": (task.CopyBackTask, "_finish"),
    "release": (task, "let_go"),
    "end": (ClassifiedTask, "_end"),
}
"""The step boundaries of a copy-back, in the order in which they come."""
FILES = ("part-0.bundle", "part-0.patch", "stat.json", "manifest.json")
"""Each file of an artifact is a point of its own, between its writing and its name too (``part``)."""


def die(point: str, when: str) -> None:
    """Kill this worker if the running task is to die here and has not yet."""
    name, _, rest = _running.get().partition(".")
    if (name, rest.partition(".")[0]) != (point, when):
        return
    try:
        Path(os.environ["CHAOS_DEATHS"], _running.get()).touch(exist_ok=False)
    except FileExistsError:
        return
    os.killpg(os.getpgid(0), signal.SIGKILL)


def _deadly(point: str, inner: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(inner)
    def outer(*args: Any, **kwargs: Any) -> Any:
        die(point, "before")
        answer = inner(*args, **kwargs)
        die(point, "after")
        return answer

    return outer


def _plant() -> None:
    for point, (owner, name) in POINTS.items():
        setattr(owner, name, _deadly(point, getattr(owner, name)))
    write, sum_up, execute = ArtifactStore._write, ArtifactStore._sum, task.CopyBackTask.execute

    def deadly_write(self: ArtifactStore, digest: str, name: str, *args: Any) -> None:
        die(name.replace(".", "-"), "before")
        write(self, digest, name, *args)
        die(name.replace(".", "-"), "after")

    def deadly_sum(self: ArtifactStore, key: str) -> Any:
        if key.endswith(".part"):
            die(key.rpartition("/")[2].rsplit(".", 2)[0].replace(".", "-"), "written")
        return sum_up(self, key)

    def named(self: Any, request: Any, attempt: Any) -> Any:
        _running.set(attempt.task_id)
        return execute(self, request, attempt)

    ArtifactStore._write, ArtifactStore._sum = deadly_write, deadly_sum
    task.CopyBackTask.execute = named


_plant()
