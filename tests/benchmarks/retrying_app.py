"""A worker with nothing to do: a job that does nothing, a bare task that does nothing, and a look at the process."""

import sys
from typing import Any, ClassVar

import psutil
from kombu import Queue

from worker.app import app
from worker.failures.schedule import Schedule
from worker.retrying.attempt import Attempt
from worker.retrying.task import ClassifiedTask

app.conf.task_queues = [*app.conf.task_queues, Queue("bench")]


class Nothing(ClassifiedTask):
    name = "bench.ours"
    operation: ClassVar[str] = "clone"
    code: ClassVar[str] = "clone_failed"
    schedule: ClassVar[Schedule] = Schedule(attempts=3, countdowns=(1.0,), deadline=60)

    def parse(self, payload: Any) -> Any:
        return payload

    def execute(self, request: Any, attempt: Attempt) -> dict[str, Any]:
        return {}


ours = app.register_task(Nothing())


@app.task(name="bench.bare")
def bare(**_: Any) -> dict[str, Any]:
    return {}


@app.task(name="bench.look")
def look(**_: Any) -> dict[str, Any]:
    """What this child holds in memory of its own (bytes), and which modules it has loaded."""
    return {"uss": psutil.Process().memory_full_info().uss, "modules": sorted(sys.modules)}
