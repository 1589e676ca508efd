"""A small read tool on a warm sandbox against the bare calls it needs, and twenty calls at once."""

import io
import json
import statistics
import tarfile
import threading
import time
from collections.abc import Iterator
from typing import Any

import docker

from tests.benchmarks.measure import docker_service, row, seconds
from tests.rig.jobs import Service
from tests.rig.tools import dispatch, push, request, tool

ROUNDS = 15
PARALLEL = 20
STEPS = ("bootstrap", "stage", "dispatch", "collect")
"""What a call adds to holding a sandbox, which every job does."""


def benchmarks() -> Iterator[dict[str, Any]]:
    with docker_service() as (made, engine):
        made.start_worker(concurrency=2)
        reference = push(made, tool("cat", effect="read", output="json"))
        warm = request(reference, provider="docker", run_id="run-bench", after={"keep": 600})
        outcome = made.outcome(dispatch(made, warm))
        assert outcome.state == "SUCCESS", outcome
        warm |= {"sandbox": outcome.result["sandbox"]}
        yield _read(made, engine, warm)
        yield _parallel(made, warm)


def _read(made: Service, engine: str, warm: dict[str, Any]) -> dict[str, Any]:
    """Medians of alternating rounds; the peer is upload, exec and read of the output through docker-py."""
    client = docker.DockerClient(base_url=engine)
    container = client.containers.get(warm["sandbox"]["id"])
    ours, peer = [], []
    for number in range(ROUNDS):
        peer.append(seconds(lambda: _bare(container)))
        result = _call(made, warm, number)
        assert "bootstrap" not in result["steps_ms"], "the package was uploaded again"
        ours.append(sum(result["steps_ms"].get(step, 0) for step in STEPS) / 1000)
    client.close()
    return row("dispatch_read", statistics.median(ours), statistics.median(peer), "s", 1.5)


def _call(made: Service, warm: dict[str, Any], number: int) -> dict[str, Any]:
    fresh = {"dispatch_id": f"call-{time.monotonic_ns()}", "arguments": {"n": number}}
    outcome = made.outcome(dispatch(made, warm | fresh))
    assert outcome.result.get("output") == {"n": number}, outcome
    result: dict[str, Any] = outcome.result
    return result


def _bare(container: Any) -> None:
    container.put_archive("/tmp", _tar("input.json", b'{"n": 1}'))
    assert container.exec_run(["sh", "-c", "cat </tmp/input.json >/tmp/output.json"]).exit_code == 0
    chunks, _ = container.get_archive("/tmp/output.json")
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as tar:
        assert json.load(tar.extractfile("output.json") or io.BytesIO()) == {"n": 1}


def _tar(name: str, data: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _parallel(made: Service, warm: dict[str, Any]) -> dict[str, Any]:
    """Twenty calls at once against the same twenty one after the other."""
    alone = seconds(lambda: [_call(made, warm, number) for number in range(PARALLEL)])

    def together() -> None:
        threads = [threading.Thread(target=_call, args=(made, warm, number)) for number in range(PARALLEL)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return row("dispatch_parallel", seconds(together), alone, "s", 1.3)
