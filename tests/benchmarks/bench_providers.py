"""What a hosted driver costs over the same SDK calls made bare, against the double, in one run.

The double answers 50 ms late: a hosted API is at least that far away, and on loopback a process that is started in
the sandbox would weigh more than the network ever lets it. The peer keeps the same promises with as few calls of
the synchronous SDK as it can: it looks before it creates, makes the layout, and writes a file beside its place.
"""

import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from daytona import CreateSandboxFromSnapshotParams, Daytona, DaytonaConfig, ListSandboxesQuery
from e2b import Sandbox, SandboxQuery

from tests.benchmarks.measure import row
from tests.rig import hosted
from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN, Spec
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.registry import Registry

LATENCY = 0.05
GOAL = 1.2
ROUNDS = 15
DATA = b"x" * 10_000
LAYOUT = "mkdir -p ~/workspace ~/repos && mkdir -p -m 700 ~/.sandferry && echo ~"
PLACE = "mv ~/up ~/workspace/f && chmod 600 ~/workspace/f"


def benchmarks() -> Iterator[dict[str, Any]]:
    """A row for each provider and operation; ours and peer are medians in milliseconds."""
    for name, bare in (("e2b", BareE2B), ("daytona", BareDaytona)):
        with tempfile.TemporaryDirectory() as home, hosted.double(name, Path(home)) as double:
            double.latency = LATENCY
            for operation, (ours, peer) in compared(name, double, bare(double)).items():
                yield row(f"provider_overhead_{name}_{operation}", ours, peer, "ms", GOAL)


class BareE2B:
    """The calls of the e2b SDK."""

    def __init__(self, double: Any) -> None:
        self._sandbox_class, self._query = Sandbox, SandboxQuery
        self._options = {"api_key": double.api_key, "api_url": double.url, "sandbox_url": double.url}

    def create(self) -> None:
        labels = new_labels()
        assert self._sandbox_class.list(query=self._query(metadata=labels), **self._options).next_items() == []
        self.sandbox = self._sandbox_class.create("base", timeout=600, metadata=labels, **self._options)
        self.sandbox.get_info()
        self.home = self.sandbox.commands.run(LAYOUT).stdout.strip()

    def run(self) -> None:
        assert self.sandbox.commands.run("echo hi").stdout == "hi\n"

    def write(self) -> None:
        self.sandbox.files.write(f"{self.home}/up", DATA)
        self.sandbox.commands.run(PLACE)

    def read(self) -> None:
        assert bytes(self.sandbox.files.read(f"{self.home}/workspace/f", format="bytes")) == DATA


class BareDaytona:
    """The calls of the daytona SDK."""

    def __init__(self, double: Any) -> None:
        self._params, self._query = CreateSandboxFromSnapshotParams, ListSandboxesQuery
        self._client = Daytona(DaytonaConfig(api_key=double.api_key, api_url=double.api_url, target="local"))

    def create(self) -> None:
        labels = new_labels()
        assert list(self._client.list(self._query(labels=labels))) == []
        self.sandbox = self._client.create(self._params(name=f"bench-{uuid.uuid4()}", labels=labels, ttl_minutes=10))
        self.sandbox.refresh_data()
        self.home = self.sandbox.process.exec(LAYOUT, timeout=10).result.strip()

    def run(self) -> None:
        assert self.sandbox.process.exec("echo hi", timeout=10).result == "hi\n"

    def write(self) -> None:
        self.sandbox.fs.upload_file(DATA, f"{self.home}/up")
        self.sandbox.process.exec(PLACE, timeout=10)

    def read(self) -> None:
        assert self.sandbox.fs.download_file(f"{self.home}/workspace/f") == DATA


class Ours:
    """The same through the driver."""

    def __init__(self, name: str, double: Any) -> None:
        self._provider = Registry(hosted.provider_settings(name, double)).get(name)

    def create(self) -> None:
        self.sandbox = self._provider.create(Spec(ttl=600), new_labels(), deadline=soon())
        self.path = f"{self.sandbox.layout.workspace}/f"

    def run(self) -> None:
        assert self.sandbox.run(["echo", "hi"], deadline=soon()).stdout == b"hi\n"

    def write(self) -> None:
        self.sandbox.write(self.path, DATA, deadline=soon())

    def read(self) -> None:
        assert b"".join(self.sandbox.read(self.path, deadline=soon())) == DATA


def compared(name: str, double: Any, bare: Any) -> dict[str, tuple[float, float]]:
    """Medians; the runs alternate, so that a busy moment of the machine meets both."""
    ours = Ours(name, double)
    found = {}
    for operation in ("create", "run", "write", "read"):
        calls = (getattr(ours, operation), getattr(bare, operation))
        for call in calls:
            call()
        times = [[milliseconds(call) for call in calls] for _ in range(ROUNDS)]
        found[operation] = (statistics.median(t[0] for t in times), statistics.median(t[1] for t in times))
    return found


def milliseconds(call: Callable[[], None]) -> float:
    begun = time.perf_counter()
    call()
    return (time.perf_counter() - begun) * 1000


def new_labels() -> dict[str, str]:
    return {LABEL_RUN: f"bench-{uuid.uuid4()}", LABEL_REQUEST: "bench"}


def soon() -> Deadline:
    return Deadline.after(60)
