"""Where the canary suite plays: a whole service, and somebody listening at every wall."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.doubles.sentry import FakeSentry, fake_sentry
from tests.doubles.spite import Spite
from tests.rig.flower import Flower
from tests.rig.jobs import QUEUES, Service, service
from tests.rig.ports import later_port
from tests.rig.waiting import until
from tests.rig.worker_process import WorkerProcess
from worker.demo.broker import embedded
from worker.demo.sinks import ArgvWatch


@dataclass
class Stage:
    """``jobs`` are what was sent; the rest is what was overheard while it ran."""

    made: Service
    sentry: FakeSentry
    flower: Flower
    spite: Spite
    metrics_port: int
    jobs: list[Any] = field(default_factory=list)
    clones: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    events: list[bytes] = field(default_factory=list)
    inspected: list[bytes] = field(default_factory=list)
    traffic: list[bytes] = field(default_factory=list)
    argv: ArgvWatch = field(default_factory=ArgvWatch)

    def key(self, provider: str) -> Path:
        """Where the key of the account with a provider lies."""
        return self.made.home / f"{provider}.key"

    def ended(self, sent: Any, run_id: str = "-") -> Any:
        """Wait for a job, and remember it and the sandbox that it left."""
        sent.get(timeout=60, propagate=False)
        self.jobs.append(sent)
        if sent.state == "SUCCESS" and isinstance(sent.result, dict) and "path" in sent.result:
            self.clones.append((run_id, sent.result))
        return sent

    def settle(self) -> None:
        """Sweep until every outcome is confirmed: then no record holds a message any more."""
        attempts = self.made.services.attempts

        def quiet() -> bool:
            self.made.send("maintenance.sweep", {"schema": 1}, queue="maintenance")
            # What may have been made at a provider that gives no answer is looked for again and again: unsettled.
            kept = [
                record for record in attempts.all()
                if record.envelope and record.run_id != "-" and not record.unsettled
            ]  # fmt: skip
            return not kept

        until(quiet, seconds=30, pause=0.5, what="every outcome is confirmed")


@contextmanager
def stage(home: Path, *, fences: str = "up") -> Iterator[Stage]:
    """Raise the curtain; the worker logs at DEBUG."""
    with ExitStack() as stack:
        url = stack.enter_context(embedded())
        sentry = stack.enter_context(fake_sentry())
        spite = stack.enter_context(Spite())
        (home / "dsn").write_text(sentry.dsn)
        for key in ("e2b.key", "daytona.key"):
            (home / key).write_text("the sources write theirs later")
        port = later_port()
        made = stack.enter_context(
            service(
                home, url, SENTRY_DSN_FILE=str(home / "dsn"), METRICS_PORT=str(port), LOG_LEVEL="DEBUG",
                DOCKER_URL=f"tcp://127.0.0.1:{spite.port}", DOCKER_IMAGE="canary:latest", E2B_API_URL=spite.url,
                E2B_SANDBOX_URL=spite.url, E2B_API_KEY_FILE=str(home / "e2b.key"), DAYTONA_API_URL=spite.url,
                DAYTONA_API_KEY_FILE=str(home / "daytona.key"),
            )
        )  # fmt: skip
        made.env |= {"CANARY_FENCES": fences}
        _worker(made)
        flower = Flower(home, made.env)
        stack.callback(flower.stop)
        playing = Stage(made, sentry, flower, spite, port)
        stack.enter_context(_listening(playing, url))
        until(lambda: "w1@" in json.dumps(flower.api("/workers?status=1")), what="Flower has heard of the worker")
        yield playing


def _worker(made: Service) -> None:
    worker = WorkerProcess(
        "tests.canary.app", env=made.env, log=made.home / "w1.log", queues=f"{QUEUES},canary", concurrency=4,
        extra=("-l", "DEBUG"),
    )  # fmt: skip
    made.workers.append(worker)
    worker.wait_ready()


@contextmanager
def _listening(playing: Stage, url: str) -> Iterator[None]:
    over = threading.Event()
    listeners = [
        threading.Thread(target=listen, args=(playing, url, over), daemon=True)
        for listen in (_monitor, _events, _inspect)
    ]
    with playing.argv:
        for listener in listeners:
            listener.start()
        try:
            yield
        finally:
            over.set()
            for listener in listeners:
                listener.join(10)


def _monitor(playing: Stage, url: str, over: threading.Event) -> None:
    """Every byte that any client sends to the server: messages, results, records, replies of workers."""
    with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0)) as wire:
        wire.sendall(b"MONITOR\r\n")
        wire.settimeout(0.5)
        rest = b""
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                *lines, rest = (rest + wire.recv(1 << 20)).split(b"\r\n")
                playing.traffic += lines


def _events(playing: Stage, _: str, over: threading.Event) -> None:
    def keep(event: dict[str, Any]) -> None:
        playing.events.append(json.dumps(event).encode())

    with playing.made.app.connection() as connection:
        receiver = playing.made.app.events.Receiver(connection, handlers={"*": keep})
        while not over.is_set():
            with contextlib.suppress(TimeoutError, OSError):
                receiver.capture(limit=None, timeout=1, wakeup=True)


def _inspect(playing: Stage, _: str, over: threading.Event) -> None:
    inspect = playing.made.app.control.inspect(timeout=1.0, limit=1)
    while not over.wait(0.2):
        for ask in (inspect.active, inspect.reserved, inspect.scheduled):
            playing.inspected.append(json.dumps(ask()).encode())
