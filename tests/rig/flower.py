"""A real Flower, its REST API, and its pages as a browser shows them."""

import base64
import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.rig.ports import later_port
from tests.rig.waiting import until

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 20_000
"""Milliseconds of page time a browser gives scripts and timers before it looks."""


class Flower:
    """`sandferry flower` on a free port; ``user`` is ``name:password``."""

    def __init__(self, home: Path, env: dict[str, str], *options: str) -> None:
        self.home, self.port = home, later_port()
        self.log = home / "flower.log"
        users = home / "flower-users"
        env = {**env, "SANDFERRY_FLOWER_USERS_FILE": str(users), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-P", "-m", "worker.cli", "flower", f"--port={self.port}", *options]
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(command, env=env, cwd=home, stdout=out, stderr=subprocess.STDOUT)
        until(lambda: self.status("/healthcheck") == 200, seconds=40, what=f"Flower answers ({self.log})")
        self.user = users.read_text().strip()

    def status(self, path: str, user: str | None = None, method: str = "GET") -> int:
        try:
            with self._open(path, user, method) as reply:
                return int(reply.status)
        except urllib.error.HTTPError as exc:
            return exc.code
        except OSError:
            return 0

    def text(self, path: str) -> str:
        with self._open(path, self.user) as reply:
            return str(reply.read().decode())

    def api(self, path: str) -> Any:
        return json.loads(self.text(f"/api{path}"))

    def page(self, path: str) -> str:
        """The document after its scripts have run."""
        return self._browse(path, "--dump-dom").stdout

    def screenshot(self, path: str, file: Path, size: str = "1920,640") -> None:
        self._browse(path, f"--screenshot={file}", f"--window-size={size}", "--hide-scrollbars")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _open(self, path: str, user: str | None, method: str = "GET") -> Any:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method)
        if user is not None:
            request.add_header("Authorization", "Basic " + base64.b64encode(user.encode()).decode())
        return urllib.request.urlopen(request, timeout=10)

    def _browse(self, path: str, *options: str) -> subprocess.CompletedProcess[str]:
        command = [
            browser(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            f"--user-data-dir={self.home}/browser", f"--virtual-time-budget={PATIENCE}", *options,
            f"http://{self.user}@127.0.0.1:{self.port}{path}",
        ]  # fmt: skip
        return subprocess.run(
            command, env={"PATH": os.environ["PATH"], "HOME": str(self.home)},
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip


def browser() -> str:
    """A Chromium; a missing one skips here, and fails in CI."""
    for name in BROWSERS:
        if found := shutil.which(name):
            return found
    if os.environ.get("CI") == "true":
        pytest.fail("there is no browser: apt-get install chromium")
    pytest.skip("there is no browser: apt-get install chromium")
