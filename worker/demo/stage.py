"""The demo's scene: a broker, a GitHub, a worker, all on this machine and gone afterwards."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from celery import Celery

from worker.app import make_app
from worker.demo.broker import embedded
from worker.demo.failing_git import failing_git
from worker.demo.github_double import GitHubDouble, create_app_key
from worker.demo.hosted.stage import hosted
from worker.retrying.services import Services
from worker.secrets import keyring
from worker.settings import Settings

PREFIX = "SANDFERRY_"
APP_ID = "4711"
LAG_SECONDS = 8.0
"""How long this GitHub takes to know a token: longer than the first countdown (3 s), shorter than both."""
START_TIMEOUT = 60.0
"""Seconds for the worker to come up; a cold start takes about 2."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What the acts of the demo use."""

    home: Path
    github: GitHubDouble
    app: Celery
    services: Services
    log: Path
    provider: str
    worker: subprocess.Popen[bytes]


@contextmanager
def stage(provider: str = "local") -> Iterator[Stage]:
    """Set the scene; everything is in a temporary directory and ends with the block."""
    with contextlib.ExitStack() as scene:
        home = Path(scene.enter_context(tempfile.TemporaryDirectory(prefix="sandferry-demo-")))
        private, public = create_app_key()
        key_file = home / "app.pem"
        key_file.touch(mode=0o600)
        key_file.write_text(private)
        keyring.new(home / "keyring.json")
        (home / "github").mkdir()
        failing_git(home)
        double = GitHubDouble(
            home / "github", app_id=APP_ID, public_key=public, lag_seconds=LAG_SECONDS, public=["acme/pier"]
        )
        github = scene.enter_context(double)
        url = scene.enter_context(embedded())
        variables = _variables(home, url, github.url) | scene.enter_context(hosted(provider, home))
        log = home / "worker.log"
        worker = scene.enter_context(_worker(variables, log, home))
        config = Settings.model_validate(
            {name.removeprefix(PREFIX).lower(): value for name, value in variables.items()}
        )
        yield Stage(home, github, make_app(config), Services(config), log, provider, worker)


def _variables(home: Path, broker: str, github: str) -> dict[str, str]:
    return {
        "SANDFERRY_ARTIFACT_STORES": f"default=file://{home}/artifacts",
        "SANDFERRY_BROKER_URL": broker,
        "SANDFERRY_ALLOW_LOCAL": "1",
        "SANDFERRY_LOCAL_ROOT": str(home / "sandboxes"),
        "SANDFERRY_DIAGNOSTICS_DIR": str(home / "diagnostics"),
        "SANDFERRY_KEYRING_FILE": str(home / "keyring.json"),
        "SANDFERRY_GITHUB_APP_ID": APP_ID,
        "SANDFERRY_GITHUB_APP_KEY_FILE": str(home / "app.pem"),
        "SANDFERRY_GITHUB_API_URL": github,
        "SANDFERRY_GITHUB_URL": github,
        "SANDFERRY_TOOL_STORES": f"default={home}/tools",
        "SANDFERRY_HTTP_HOSTS": github.removeprefix("http://"),
    }


@contextmanager
def _worker(variables: dict[str, str], log: Path, home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """One worker process with one slot, so that a slot that sleeps would be seen."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8", **variables}
    command = [sys.executable, "-P", "-m", "worker.cli", "worker", "-c", "1"]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, env=env, cwd=home, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        _wait_ready(process, log)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


def _wait_ready(process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_TIMEOUT
    while " ready." not in log.read_text(errors="replace"):
        if process.poll() is not None or time.monotonic() > end:
            raise ChildProcessError(None, f"the worker did not start:\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.05)
