"""What our exec stream costs against Docker's own clients, on the same container."""

import os
import statistics
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import docker

from tests.rig.docker_engine import IMAGE, engine
from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN, Spec
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.docker.provider import DockerProvider
from worker.sandboxes.docker.sandbox import DockerSandbox
from worker.sandboxes.settings import DockerSettings

_OUTPUT = 50_000_000
"""Bytes of output of the large case."""


def benchmarks() -> Iterator[dict[str, Any]]:
    """Each result: name, ours and peer in ``unit``, their ratio, the goal for it, whether it holds."""
    with engine() as url:
        provider = DockerProvider(DockerSettings(url=url, image=IMAGE, network="host"))
        labels = {LABEL_RUN: f"bench-{uuid.uuid4()}", LABEL_REQUEST: "bench"}
        sandbox = provider.create(Spec(), labels, deadline=Deadline.after(60))
        try:
            yield exec_output_50mb(url, sandbox)
            yield exec_small(url, sandbox)
        finally:
            sandbox.release(deadline=Deadline.after(60))


def exec_output_50mb(url: str, sandbox: DockerSandbox) -> dict[str, Any]:
    """50 MB of one command's output, collected in memory; the peer is ``docker exec``."""
    argv = ["head", "-c", str(_OUTPUT), "/dev/zero"]

    def ours() -> None:
        done = sandbox.run(argv, deadline=Deadline.after(60), output_limit=2 * _OUTPUT)
        assert len(done.stdout) == _OUTPUT

    def peer() -> None:
        command = ["docker", "-H", url, "exec", sandbox.id, *argv]
        assert len(subprocess.run(command, env=dict(os.environ), capture_output=True, check=True).stdout) == _OUTPUT

    return _compared("exec_output_50mb", ours, peer, rounds=9, goal=1.3)


def exec_small(url: str, sandbox: DockerSandbox) -> dict[str, Any]:
    """A command with one line of output; the peer is docker-py's ``exec_run``."""
    client = docker.DockerClient(base_url=url)
    container = client.containers.get(sandbox.id)

    def ours() -> None:
        assert sandbox.run(["echo", "hi"], deadline=Deadline.after(60)).stdout == b"hi\n"

    def peer() -> None:
        assert container.exec_run(["echo", "hi"]).exit_code == 0

    try:
        return _compared("exec_small", ours, peer, rounds=60, goal=1.1)
    finally:
        client.close()


def _compared(
    name: str, ours: Callable[[], None], peer: Callable[[], None], *, rounds: int, goal: float
) -> dict[str, Any]:
    """Medians in milliseconds; the runs alternate, so that a busy moment of the machine meets both."""
    times: dict[Callable[[], None], list[float]] = {ours: [], peer: []}
    for number in range(rounds):
        for one in (ours, peer) if number % 2 else (peer, ours):
            begun = time.perf_counter()
            one()
            times[one].append((time.perf_counter() - begun) * 1000)
    mine, theirs = (statistics.median(times[one]) for one in (ours, peer))
    ratio = mine / theirs
    return {
        "name": name,
        "ours": round(mine, 1),
        "peer": round(theirs, 1),
        "unit": "ms",
        "ratio": round(ratio, 3),
        "goal": goal,
        "holds": ratio <= goal,
    }


if __name__ == "__main__":
    for result in benchmarks():
        print(result)
