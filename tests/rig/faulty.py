"""Attempts of `tool.dispatch` in this process, over a local sandbox that fails as it is told.

A delivery that dies with its worker raises :class:`WorkerKilled`, which no code of ours catches.
"""

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tasks.dispatch.task import DispatchTask
from worker.failures.model import Failure, InvalidRequest, OperationFailed
from worker.retrying.attempt import Attempt
from worker.retrying.services import Services
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.local.groups import kill_by_home
from worker.settings import Settings


class WorkerKilled(BaseException):
    """SIGKILL: nothing is cleaned up, nothing is told."""


class Faults:
    """Takes the next fault of a plan at every call of a sandbox. ``""`` is none."""

    def __init__(self, plan: list[str], pick: Callable[[float], float]) -> None:
        self.plan = plan
        self.pick = pick
        self.happened: list[str] = []
        self.forget: Callable[[], Any] = lambda: None

    def around(self, call: Callable[..., Any], sandbox: Any, kwargs: dict[str, Any], args: tuple[Any, ...]) -> Any:
        fault = self.plan.pop(0) if self.plan else ""
        if fault:
            self.happened.append(fault)
        match fault:
            case "forget":
                self.forget()
            case "refused":
                raise ConnectionRefusedError("nothing was sent")
            case "reset_after":
                call(*args, **kwargs)
                raise ConnectionResetError("the answer was lost")
            case "reset_during":
                cut(call, args, kwargs, self.pick(0.12))
                raise ConnectionResetError("cut")
            case "killed_before":
                raise WorkerKilled
            case "killed_after":
                call(*args, **kwargs)
                raise WorkerKilled
            case "killed_during":
                cut(call, args, kwargs, self.pick(0.12))
                raise WorkerKilled
            case "tool_lost":
                cut(call, args, kwargs, self.pick(0.12))
                kill_all(sandbox)
                raise ConnectionResetError("the machine was restarted")
            case "gone":
                cut(call, args, kwargs, self.pick(0.12))
                sandbox.release(deadline=Deadline.after(10))
                raise ConnectionResetError("the machine is gone")
        return call(*args, **kwargs)


def cut(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], seconds: float) -> None:
    """Do it until the connection breaks."""
    with suppress(OperationFailed):
        call(*args, **{**kwargs, "deadline": Deadline.after(seconds)})


def kill_all(sandbox: Any) -> None:
    """Every process of a local sandbox, as a restart of its machine would."""
    kill_by_home(str(Path(sandbox.layout.scratch).parent / "home"))


class FaultySandbox:
    def __init__(self, real: Any, faults: Faults) -> None:
        self.real, self.faults = real, faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        return self.faults.around(self.real.run, self.real, kwargs, args)

    def write(self, *args: Any, **kwargs: Any) -> Any:
        return self.faults.around(self.real.write, self.real, kwargs, args)


class FaultyProvider:
    def __init__(self, real: Any, faults: Faults) -> None:
        self.real, self.faults, self.name = real, faults, real.name

    def get(self, name: str) -> "FaultyProvider":
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def create(self, *args: Any, **kwargs: Any) -> Any:
        return FaultySandbox(self.real.create(*args, **kwargs), self.faults)

    def connect(self, *args: Any, **kwargs: Any) -> Any:
        return FaultySandbox(self.real.connect(*args, **kwargs), self.faults)

    def find(self, *args: Any, **kwargs: Any) -> Any:
        return [FaultySandbox(found, self.faults) for found in self.real.find(*args, **kwargs)]


class Bench:
    """A task with services of its own; deliveries are calls, countdowns are skipped."""

    def __init__(self, home: Path, url: str, faults: Faults | None = None) -> None:
        self.services = Services(
            Settings(
                broker_url=url, allow_local=True, local_root=home / "sandboxes",
                tool_stores={"default": str(home / "tools")}, diagnostics_dir=home / "diagnostics",
                artifact_stores={"default": f"file://{home}/artifacts"},
            )
        )  # fmt: skip
        self.faults = faults or Faults([], lambda most: most)
        self.local = self.services.providers.get("local")
        self.faults.forget = self.services.client.flushall
        self.services.__dict__["providers"] = FaultyProvider(self.local, self.faults)
        bench = self

        class Task(DispatchTask):
            services = bench.services

        self.task = Task()
        self.services.ledger.born()

    def attempt(self, task_id: str, run_id: str, number: int, fence: int, carry: str) -> Attempt:
        return Attempt(
            task_id=task_id, run_id=run_id, operation="dispatch", number=number, attempts=12, fence=fence, spent=0.0,
            first_seen=time.time(), carry=carry, deadline=Deadline.after(60), events=self.services.events,
        )  # fmt: skip

    def deliver(self, request: dict[str, Any], task_id: str = "", *, deliveries: int = 20) -> tuple[str, Any]:
        """Attempts and redeliveries until the task is over: ``("SUCCESS", result)`` or ``("FAILURE", cause)``."""
        task_id = task_id or str(uuid.uuid4())
        number, carry = 1, ""
        for fence in range(1, deliveries + 1):
            try:
                state, value, carry = self._body(request, task_id, number, fence, carry)
            except WorkerKilled:
                continue  # the message comes again, to another worker
            if state != "RETRY":
                return state, value
            number += 1
        raise AssertionError("never over")

    def _body(self, payload: dict[str, Any], task_id: str, number: int, fence: int, carry: str) -> tuple[str, Any, str]:
        attempt = self.attempt(task_id, payload["run_id"], number, fence, carry)
        request = None
        failure: Failure
        with attempt.resources:
            try:
                request = self.task.parse(payload)
                return "SUCCESS", self.task.execute(request, attempt), ""
            except (Exception, InvalidRequest) as exc:  # noqa: BLE001
                failure = self.task.facts_of(exc, attempt)
            verdict = self.task.judge(failure, attempt, 60.0)
            cause = self.task.cause(failure, verdict)
            if verdict.retry:
                return "RETRY", str(cause), attempt.carry
            self.task._settle(request, attempt, verdict)
            return "FAILURE", str(cause), ""


def processes_of(place: str) -> list[int]:
    """Processes whose command line names ``place``."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if place.encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def kill(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Run at once, each on a thread; what each returned."""
    answers: list[Any] = [None] * len(calls)

    def one(index: int) -> None:
        answers[index] = calls[index]()

    threads = [threading.Thread(target=one, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers
