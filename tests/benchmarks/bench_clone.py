"""The time inside the task against plain `git clone` of the same 50 MB repository in the same container."""

import os
import statistics
import subprocess
from collections.abc import Iterator
from typing import Any

from tests.benchmarks.measure import docker_service, row, seconds
from tests.doubles.repositories import git

ROUNDS = 5
FILES, FILE_BYTES = 500, 100_000


def benchmarks() -> Iterator[dict[str, Any]]:
    with docker_service() as (made, engine):
        made.start_worker(concurrency=1)
        files = {f"d{n % 20}/f{n}.bin": os.urandom(FILE_BYTES) for n in range(FILES)}
        made.public("big-0", files)
        for number in range(1, ROUNDS + 1):
            git(
                "clone",
                "-q",
                "--bare",
                str(made.hub.root / "acme/big-0.git"),
                str(made.hub.root / f"acme/big-{number}.git"),
            )
            made.hub.public.add(f"acme/big-{number}")
        warm = made.outcome(made.clone(made.hub.git_url("acme", "big-0"), provider="docker", run_id="run-bench"))
        sandbox = {"provider": "docker", "id": warm.result["sandbox"]["id"]}
        ours, peer = [], []
        for number in range(1, ROUNDS + 1):
            url = made.hub.git_url("acme", f"big-{number}")
            command = ["docker", "-H", engine, "exec", sandbox["id"], "git", "clone", "-q", url, f"/tmp/plain-{number}"]
            peer.append(seconds(lambda command=command: subprocess.run(command, check=True)))
            outcome = made.outcome(made.clone(url, provider="docker", run_id="run-bench", sandbox=sandbox))
            ours.append(outcome.result["duration_ms"] / 1000)
        yield row("clone", statistics.median(ours), statistics.median(peer), "s", 1.10)
