"""Real worker processes for tests."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from tests.rig.waiting import until

ROOT = Path(__file__).resolve().parents[2]


class WorkerProcess:
    """`celery worker` in a process group of its own."""

    def __init__(
        self, app: str, *, env: dict[str, str], log: Path, queues: str, pool: str = "prefork", concurrency: int = 1,
        name: str = "w1", extra: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.log = log
        command = [
            sys.executable, "-m", "celery", "-A", app, "worker", "-Q", queues, "-P", pool, "-c", str(concurrency),
            "-n", f"{name}@%h", "--without-mingle", "--without-gossip", "-l", "INFO", *extra,
        ]  # fmt: skip
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                command, env=env, stdout=out, stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True
            )

    def wait_ready(self, seconds: float = 40.0) -> "WorkerProcess":
        until(self._ready, seconds=seconds, what=f"worker ready ({self.log})")
        return self

    def _ready(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(f"worker ended with {self.process.returncode}:\n{self.text()[-4000:]}")
        return " ready" in self.text()

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def children(self) -> list[int]:
        with contextlib.suppress(psutil.NoSuchProcess):
            return [child.pid for child in psutil.Process(self.process.pid).children(recursive=True)]
        return []

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill_all(self) -> None:
        """SIGKILL the whole group at once, as a machine that loses power would."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    def stop(self, seconds: float = 20.0) -> int:
        """Ask to end (SIGTERM), then insist."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill_all()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.returncode
