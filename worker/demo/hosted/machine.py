"""A sandbox of a double: a directory, its processes, and a lease. It isolates nothing."""

import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from worker.sandboxes.local.tree import remove

_SWEEP = 0.1
"""Seconds between two looks at the leases."""
_MARK = "SANDFERRY_DOUBLE"
"""Variable that every process of a sandbox inherits."""


@dataclass(slots=True, kw_only=True)
class Machine:
    """One sandbox. Times are epoch seconds; ``visible_from`` is when lists begin to show it."""

    id: str
    home: Path
    labels: dict[str, str]
    env: dict[str, str]
    created: float
    end_at: float
    name: str = ""
    kind: str = ""
    visible_from: float = 0.0
    state: str = "running"
    mark: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def alive(self) -> bool:
        """It was not ended, and its lease has not either."""
        return self.state not in ("killed", "stopped") and time.time() < self.end_at

    def environment(self, more: Mapping[str, str] | None) -> dict[str, str]:
        """What its commands start with."""
        base = {"PATH": os.environ["PATH"], "HOME": str(self.home), "USER": "user", _MARK: self.mark}
        return base | self.env | dict(more or {})

    def start(self, argv: list[str], env: Mapping[str, str] | None, cwd: str | None) -> "subprocess.Popen[bytes]":
        """Start a process, its stdout and stderr piped."""
        return subprocess.Popen(
            argv, env=self.environment(env), cwd=cwd or self.home, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def end(self) -> None:
        """End its processes and remove its files."""
        self.state = "killed"
        wanted = f"{_MARK}={self.mark}".encode()
        for process in Path("/proc").iterdir():
            if not process.name.isdigit():
                continue
            with suppress(OSError):
                if wanted in (process / "environ").read_bytes().split(b"\0"):
                    os.kill(int(process.name), signal.SIGKILL)
        with suppress(OSError):
            remove(self.home)


class Machines:
    """All sandboxes of one double, and what ends them when their lease is over."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.RLock()
        self._all: dict[str, Machine] = {}
        self._over = threading.Event()
        self.made = 0
        threading.Thread(target=self._sweep, daemon=True).start()

    def make(self, sandbox_id: str, *, seconds: float, visible_after: float = 0.0, **about: object) -> Machine:
        """A new sandbox."""
        home = self._root / sandbox_id
        home.mkdir(parents=True)
        now = time.time()
        machine = Machine(
            id=sandbox_id, home=home, created=now, end_at=now + seconds, visible_from=now + visible_after,
            **about,  # type: ignore[arg-type]
        )  # fmt: skip
        with self._lock:
            self._all[sandbox_id] = machine
            self.made += 1
        return machine

    def get(self, sandbox_id: str) -> Machine | None:
        """A sandbox that lives."""
        with self._lock:
            machine = self._all.get(sandbox_id)
        if machine is not None and machine.state != "killed" and time.time() >= machine.end_at:
            machine.end()
        return machine if machine is not None and machine.alive else None

    def known(self, sandbox_id: str) -> Machine | None:
        """A sandbox, whatever became of it."""
        return self._all.get(sandbox_id)

    def by_name(self, name: str) -> Machine | None:
        """The living sandbox of this name."""
        return next((machine for machine in self.living() if machine.name == name), None)

    def living(self) -> list[Machine]:
        """Every sandbox that lives, oldest first."""
        with self._lock:
            known = list(self._all)
        return [machine for machine in map(self.get, known) if machine is not None]

    def _sweep(self) -> None:
        """End what has outlived its lease, asked for or not."""
        while not self._over.wait(_SWEEP):
            self.living()

    def end_all(self) -> None:
        """End every sandbox."""
        self._over.set()
        for machine in self.living():
            machine.end()
