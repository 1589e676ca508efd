"""A service under test: embedded Valkey, the faulty GitHub, real workers, one or more providers."""

import contextlib
import json
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from tests.doubles.github import FaultyGitHub, status
from tests.doubles.repositories import make_repository
from tests.rig.worker_process import WorkerProcess
from worker.app import make_app
from worker.demo.github_double import create_app_key
from worker.demo.sinks import redis_bytes
from worker.retrying.failed import TaskFailed
from worker.retrying.services import Services
from worker.sandboxes.base import LABEL_RUN
from worker.sandboxes.deadline import Deadline
from worker.secrets import keyring
from worker.secrets.sealed import Plaintext, git_subject, seal
from worker.settings import Settings

AGENT = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in {"NAME": "Agent", "EMAIL": "agent@example.invalid"}.items()
}
QUEUES = "dispatch,clone,copy_back,lifecycle,maintenance"


@dataclass
class Outcome:
    """How a job ended: its result or the payload of its failure."""

    state: str
    result: dict[str, Any]
    payload: dict[str, Any]

    @property
    def cause(self) -> str:
        return self.payload.get("cause", "")


@dataclass
class Service:
    home: Path
    hub: FaultyGitHub
    env: dict[str, str]
    app: Any
    services: Services
    workers: list[WorkerProcess] = field(default_factory=list)
    double: Any = None
    """The hosted provider's, if there is one."""

    def start_worker(self, name: str = "w1", *, concurrency: int = 8, pool: str = "prefork") -> WorkerProcess:
        worker = WorkerProcess(
            "worker.app", env=self.env, log=self.home / f"{name}.log", queues=QUEUES, concurrency=concurrency,
            name=name, pool=pool,
        )  # fmt: skip
        self.workers.append(worker)
        return worker.wait_ready()

    def private(self, name: str, files: dict[str, bytes] | None = None) -> str:
        """A private repository ``acme/<name>``; its URL."""
        make_repository(self.hub.root, f"acme/{name}", files)
        return self.hub.git_url("acme", name)

    def public(self, name: str, files: dict[str, bytes] | None = None) -> str:
        url = self.private(name, files)
        self.hub.public.add(f"acme/{name}")
        return url

    def reject(self, name: str, times: int, code: int = 404, body: bytes = b"Repository not found.") -> None:
        """Spoil the first ``times`` authenticated requests for a repository, as a lagging token is met."""
        headers = {"WWW_Authenticate": 'Basic realm="GitHub"'} if code == 401 else {}
        self.hub.fault(status(code, body, **headers), path=rf"/acme/{name}\.git/", when="credential", times=times)

    def sealed(self, run_id: str, url: str, token: str, /, **changes: Any) -> dict[str, Any]:
        ring = keyring.load(Path(self.env["SANDFERRY_KEYRING_FILE"]))
        fields: dict[str, Any] = {
            "run_id": run_id, "operation": "clone", "subject": git_subject(url), "expires_at": time.time() + 600,
            "username": "x-access-token", "secret": SecretStr(token),
        }  # fmt: skip
        return {"kind": "sealed", "box": seal(ring.current.public_key, Plaintext(**(fields | changes)))}

    def send(self, task: str, request: dict[str, Any], **options: Any) -> Any:
        return self.app.send_task(task, kwargs={"request": request}, **options)

    def clone(self, url: str, *, provider: str = "local", run_id: str | None = None, **more: Any) -> Any:
        request = {
            "schema": 1, "run_id": run_id or f"run-{uuid.uuid4().hex[:8]}",
            "sandbox": {"provider": provider, "spec": {}}, "repository": {"url": url},
        }  # fmt: skip
        sent = self.send("sandbox.clone", request | more)
        sent.run_id = request["run_id"]
        return sent

    def copy_back(self, cloned: dict[str, Any], run_id: str, **more: Any) -> Any:
        """Copy back the workspace that a clone's result describes."""
        request = {
            "schema": 1, "run_id": run_id, "sandbox": cloned["sandbox"], "path": cloned["path"],
            "commit": cloned["commit"], "baseline": cloned["baseline"],
        }  # fmt: skip
        return self.send("workspace.copy_back", request | more)

    def in_sandbox(self, cloned: dict[str, Any], run_id: str, script: str) -> str:
        """Run a shell script as the agent would, in the checkout."""
        provider = self.services.providers.get(cloned["sandbox"]["provider"])
        sandbox = provider.connect(cloned["sandbox"]["id"], {LABEL_RUN: run_id}, deadline=Deadline.after(30))
        done = sandbox.run(["sh", "-euc", script], cwd=cloned["path"], deadline=Deadline.after(60), env=AGENT)
        assert done.ok, (done.stdout, done.stderr)
        return done.stdout.decode()

    def outcome(self, sent: Any, timeout: float = 60) -> Outcome:
        try:
            return Outcome("SUCCESS", sent.get(timeout=timeout), {})
        except TaskFailed as failed:
            return Outcome(sent.state, {}, failed.payload)

    def events(self, run_id: str) -> list[tuple[str, dict[str, Any]]]:
        return [(event.name, event.data) for event in self.services.events.read(run_id)]

    def retries(self, run_id: str) -> list[tuple[Any, Any]]:
        return [(d["reason"], d["delay_ms"]) for name, d in self.events(run_id) if name == "sandbox.git.retrying"]

    def everything(self) -> str:
        """What the broker, the records, the results and the logs hold, for searching."""
        logs = "".join(worker.text() for worker in self.workers)
        return b"".join(redis_bytes(self.services.client)).decode() + logs


@contextmanager
def service(home: Path, broker: str, **settings: str) -> Iterator[Service]:
    """A service whose settings are ``settings`` (names without the prefix, upper case)."""
    private, public = create_app_key()
    (home / "app.pem").write_text(private)
    keyring.new(home / "keyring.json")
    (home / "github").mkdir()
    with FaultyGitHub(home / "github", app_id="4711", public_key=public) as hub:
        named = {
            "BROKER_URL": broker, "ALLOW_LOCAL": "1", "LOCAL_ROOT": str(home / "sandboxes"),
            "DIAGNOSTICS_DIR": str(home / "diagnostics"), "KEYRING_FILE": str(home / "keyring.json"),
            "GITHUB_APP_ID": "4711", "GITHUB_APP_KEY_FILE": str(home / "app.pem"), "GITHUB_API_URL": hub.url,
            "GITHUB_URL": hub.url, "HTTP_HOSTS": hub.url.removeprefix("http://"), "SWEEP_EVERY": "1",
            "ARTIFACT_STORES": f"default=file://{home}/artifacts", "TOOL_STORES": f"default={home}/tools",
            "HOST_REPOSITORIES": f"hub={home}/hub.git", **settings,
        }  # fmt: skip
        config = Settings.model_validate({name.lower(): value for name, value in named.items()})
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}
        env |= {f"SANDFERRY_{name}": value for name, value in named.items()}
        made = Service(home, hub, env, make_app(config), Services(config))
        try:
            yield made
        finally:
            for worker in made.workers:
                with contextlib.suppress(Exception):
                    worker.stop()


def canary_free(text: str, *canaries: str) -> bool:
    return not any(canary in text for canary in canaries) and not any(
        json.dumps(canary)[1:-1] in text for canary in canaries
    )
