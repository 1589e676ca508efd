"""A worker app with one scripted job, for tests of delivery and retrying.

A request says what each attempt does: ``{"schema": 1, "run_id": …, "key": …, "plan": ["network", "ok"]}``.
Every start of a body is appended to the Redis list ``probe:<key>`` as JSON.
Environment: ``PROBE_HARD_LIMIT`` and ``PROBE_SOFT_LIMIT`` are seconds, ``PROBE_GRACE`` the store's grace in seconds,
``PROBE_LOST_WAIT`` how long the pool waits for a word of a dead child, ``PROBE_SOCKET_TIMEOUT`` the store's.
"""

import json
import os
import signal
import time
from typing import Any, ClassVar

from celery.exceptions import SoftTimeLimitExceeded
from kombu import Queue

from tests.rig.canary import CANARY
from worker import startup
from worker.app import app
from worker.failures.model import Category, Credential, Failure, InvalidRequest, OperationFailed
from worker.failures.schedule import Schedule
from worker.retrying.attempt import Attempt
from worker.retrying.task import ClassifiedTask
from worker.stores import attempts, redis

app.conf.include = ("tasks.maintenance.task",)
app.conf.task_queues = [*app.conf.task_queues, Queue("probe")]
app.conf.task_routes = {**app.conf.task_routes, "probe.*": {"queue": "probe"}}
app.conf.worker_lost_wait = float(os.environ.get("PROBE_LOST_WAIT", "0.1"))
if limit := os.environ.get("PROBE_HARD_LIMIT"):
    app.conf.task_time_limit = float(limit)
    app.conf.task_soft_time_limit = None
if soft := os.environ.get("PROBE_SOFT_LIMIT"):
    app.conf.task_soft_time_limit = float(soft)
if limit or soft:
    startup.RULES = ()  # a worker refuses limits as short as these
redis.SOCKET_TIMEOUT = float(os.environ.get("PROBE_SOCKET_TIMEOUT", redis.SOCKET_TIMEOUT))
attempts.GRACE = float(os.environ.get("PROBE_GRACE", attempts.GRACE))


class Probe(ClassifiedTask):
    name = "probe.run"
    operation: ClassVar[str] = "clone"
    code: ClassVar[str] = "clone_failed"
    event: ClassVar[str] = "sandbox.git"
    schedule: ClassVar[Schedule] = Schedule(attempts=3, countdowns=(1.0, 2.0), deadline=60, jitter=0.0)

    def parse(self, payload: Any) -> dict[str, Any]:
        if not isinstance(payload, dict):
            raise InvalidRequest("request", "wrong_type")
        if payload.get("plan") is None:
            raise InvalidRequest("request", "missing")
        return payload

    def execute(self, request: dict[str, Any], attempt: Attempt) -> dict[str, Any]:
        entry = {
            "attempt": attempt.number,
            "pid": os.getpid(),
            "time": time.time(),
            "carry": attempt.carry,
            "fence": attempt.fence,
            "spent": attempt.spent,
            "sticky": hasattr(self, "override_max_retries"),
            "headers": dict(self.request.headers or {}),
        }
        self.services.client.rpush(f"probe:{request['key']}", json.dumps(entry))
        plan = request["plan"]
        steps = plan[min(attempt.number, len(plan)) - 1]
        attempt.carry = f"left-by-{attempt.number}"
        for step in steps.split("+"):
            self._step(step, attempt)
        return {"attempt": attempt.number, "garbage": object()} if "garbage" in steps else {"attempt": attempt.number}

    def settle(self, request: dict[str, Any], attempt: Attempt, verdict: Any) -> None:
        state = "ok" if verdict is None else str(verdict.category)
        self.services.client.rpush(f"settled:{request['key']}", state)

    def _step(self, step: str, attempt: Attempt) -> None:
        name, _, value = step.partition(":")
        facts = {"operation": "clone", "stage": "clone"}
        match name:
            case "ok" | "garbage":
                return
            case "limit":
                attempt.limit(float(value))
            case "say":
                time.sleep(0.2)
                attempt.emit("probe.said", bytes=int(value))
            case "last":
                # Runs when the outcome is recorded and Celery does not know it yet.
                end = os.kill if value == "child" else os.killpg
                attempt.resources.callback(end, os.getpid() if value == "child" else os.getpgid(0), signal.SIGKILL)
            case "late-result":
                attempt.resources.callback(time.sleep, 30)
            case "wrapped" | "hidden":
                self._as_an_sdk_would(float(value), hidden=name == "hidden")
            case "sleep":
                attempt.deadline.wait(float(value))
                attempt.at("clone")
            case "block":
                time.sleep(float(value))
            case "network":
                text = f"fatal: unable to access: Could not resolve host: {CANARY}"
                raise OperationFailed(Failure(**facts, exit_code=128, text=text))
            case "fresh":
                raise OperationFailed(
                    Failure(**facts, exit_code=128, credential=Credential.MINTED, credential_age=1.0,
                            text=f"remote: Repository not found.\nfatal: repository '{CANARY}' not found")
                )  # fmt: skip
            case "later":
                raise OperationFailed(Failure(**facts, http_status=429, retry_after=float(value)))
            case "auth":
                raise OperationFailed(Failure(**facts, category=Category.AUTH_DENIED, reason="auth_denied"))
            case "chained":
                try:
                    raise OSError(CANARY)  # noqa: TRY301 - the chain is what is tested
                except OSError as exc:
                    raise RuntimeError(f"wrapped {CANARY}") from exc
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "exit":
                raise SystemExit(3)
            case "memory":
                raise MemoryError(CANARY)
            case _:
                raise AssertionError(step)

    def _as_an_sdk_would(self, seconds: float, *, hidden: bool) -> None:
        try:
            time.sleep(seconds)
        except SoftTimeLimitExceeded as exc:
            if hidden:
                raise OSError(CANARY) from None
            raise RuntimeError(CANARY) from exc


probe = app.register_task(Probe())


@app.task(name="probe.bare", queue="probe", acks_late=True)
def bare(**_: Any) -> dict[str, Any]:
    """The peer of the throughput benchmark."""
    return {}
