"""What the tests of delivery share: a client, workers, and a look into broker, results and records."""

import itertools
import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from celery import Celery
from celery.result import AsyncResult

from tests.rig.waiting import until
from tests.rig.worker_process import WorkerProcess
from worker.stores.attempts import AttemptStore, Record
from worker.stores.redis import connect

_numbers = itertools.count(1)


def client_app(broker: str, results: str | None = None) -> Celery:
    """A backend's app: it knows the addresses and nothing of ours."""
    app = Celery("backend", broker=broker, backend=results or broker, set_as_current=False)
    app.conf.update(task_serializer="json", accept_content=["json"], result_serializer="json")
    return app


@dataclass(frozen=True)
class Sent:
    """One task a test has sent."""

    result: AsyncResult
    key: str
    run_id: str

    @property
    def id(self) -> str:
        return self.result.id


class Rig:
    """One installation: an address, and the workers a test starts on it."""

    def __init__(
        self, url: str, directory: Path, *, state_url: str | None = None, env: dict[str, str] | None = None
    ) -> None:
        self.url, self.directory = url, directory
        self.state_url = state_url or url
        self.client = connect(self.state_url)
        self.broker = connect(url)
        self.app = client_app(url, self.state_url)
        self.attempts = AttemptStore(self.client, prefix="sandferry", lease=30, record_ttl=3600)
        self.workers: list[WorkerProcess] = []
        self._env = env or {}

    def worker(
        self, name: str = "w1", *, pool: str = "prefork", concurrency: int = 2, queues: str = "probe,maintenance",
        env: dict[str, str] | None = None, extra: tuple[str, ...] = (), app: str = "tests.rig.probe_app",
    ) -> WorkerProcess:  # fmt: skip
        worker = WorkerProcess(
            app, env=self.env(**(env or {})), log=self.directory / f"{name}.log", queues=queues, pool=pool,
            concurrency=concurrency, name=name, extra=extra,
        )  # fmt: skip
        self.workers.append(worker)
        return worker.wait_ready()

    def env(self, **more: str) -> dict[str, str]:
        ours = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.directory),
            "SANDFERRY_BROKER_URL": self.url,
            "SANDFERRY_STATE_URL": self.state_url,
            "SANDFERRY_DIAGNOSTICS_DIR": str(self.directory / "diagnostics"),
        }
        return {**ours, **self._env, **more}

    def send(self, *plan: str, task_id: str | None = None, run_id: str | None = None, task: str = "probe.run",
             more: dict[str, Any] | None = None, key: str | None = None, **options: Any) -> Sent:  # fmt: skip
        number = next(_numbers)
        key, run_id = key or f"k{number}", run_id or f"run{number}"
        request = {"schema": 1, "run_id": run_id, "key": key, "plan": list(plan), **(more or {})}
        options = {"queue": "probe", **options}
        result = self.app.send_task(task, kwargs={"request": request}, task_id=task_id, **options)
        return Sent(result, key, run_id)

    def again(self, sent: Sent, *plan: str, **options: Any) -> Sent:
        """The same message once more, as a broker or an anxious producer would."""
        return self.send(*plan, task_id=sent.id, run_id=sent.run_id, key=sent.key, **options)

    def sweep(self) -> None:
        self.app.send_task("maintenance.sweep", kwargs={"request": {"schema": 1}}, queue="maintenance")

    def sweep_until(self, condition: Any, *, seconds: float = 20.0, what: str = "after a sweep") -> Any:
        """Sweep twice a second until ``condition`` holds."""

        def once() -> Any:
            self.sweep()
            return condition()

        return until(once, seconds=seconds, pause=0.5, what=what)

    def starts(self, sent: Sent) -> list[dict[str, Any]]:
        """The bodies that began, first one first."""
        return [json.loads(line) for line in self.client.lrange(f"probe:{sent.key}", 0, -1)]

    def wait_starts(self, sent: Sent, count: int, seconds: float = 20.0) -> list[dict[str, Any]]:
        until(lambda: len(self.starts(sent)) >= count, seconds=seconds, what=f"{count} starts")
        return self.starts(sent)

    def settled(self, sent: Sent) -> list[str]:
        return list(self.client.lrange(f"settled:{sent.key}", 0, -1))

    def record(self, sent: Sent) -> Record:
        record = self.attempts.read(sent.id)
        assert record is not None
        return record

    def wait_state(self, sent: Sent, state: str, seconds: float = 20.0) -> Record:
        until(lambda: (found := self.attempts.read(sent.id)) and found.state == state, seconds=seconds, what=state)
        return self.record(sent)

    def failure(self, sent: Sent, seconds: float = 30.0) -> dict[str, Any]:
        """The payload a client reads."""
        error = sent.result.get(timeout=seconds, propagate=False)
        assert sent.result.state == "FAILURE", sent.result.state
        payload: dict[str, Any] = error.args[0]
        return payload

    def unacked(self, sent: Sent) -> list[dict[str, Any]]:
        """The messages of a task that a worker holds: waiting retries and running bodies."""
        held = [json.loads(value)[0] for value in self.broker.hvals("unacked")]
        return [message for message in held if message["headers"]["id"] == sent.id]

    def wait_held(self, sent: Sent, attempt: int = 2) -> dict[str, Any]:
        """Wait until a worker holds nothing of a task but the message of its next attempt."""

        def held() -> dict[str, Any] | None:
            messages = self.unacked(sent)
            waiting = [m for m in messages if m["headers"].get("eta") and m["headers"]["retries"] == attempt - 1]
            return waiting[0] if len(messages) == len(waiting) == 1 else None

        message = until(held, what=f"attempt {attempt} is held")
        assert message is not None
        return message

    def queued(self, queue: str = "probe") -> list[dict[str, Any]]:
        return [json.loads(value) for value in self.broker.lrange(queue, 0, -1)]

    def quiet(self, sent: Sent) -> bool:
        """Whether neither queue nor workers hold a message of this task."""
        return not self.unacked(sent) and all(message["headers"]["id"] != sent.id for message in self.queued())

    def flush(self) -> None:
        self.client.flushdb()
        self.broker.flushdb()

    def close(self) -> None:
        """End everything at once; how a worker ends well has tests of its own."""
        for worker in self.workers:
            worker.kill_all()
        self.app.close()


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
