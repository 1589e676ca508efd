"""Fifty clones that are each rejected twice, on one worker slot, against a retry that sleeps in its process."""

import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.measure import local_service, row, seconds
from tests.doubles.repositories import BASE_ENV, bound_helper
from tests.rig.jobs import Service

CLONES = 50
PEERS = 5
"""Sleeping clones that are really run; their time is scaled to ``CLONES``."""
COUNTDOWNS = (3.0, 9.0)


def benchmarks() -> Iterator[dict[str, Any]]:
    with local_service() as made:
        made.start_worker(concurrency=1)
        url = made.private("ferry")
        made.hub.lag_rejections = 0
        one = statistics.median(seconds(lambda: _clone(made, url)) for _ in range(5))
        wrong = made.sealed("run-wrong", url, "ghs_wrongwrongwrongwrong")
        rejected = statistics.median(
            seconds(lambda: made.outcome(made.clone(url, run_id="run-wrong", credential=wrong))) for _ in range(5)
        )
        made.hub.lag_rejections = 2
        ours = seconds(lambda: _all(made, url))
        peer = sum(seconds(lambda: _sleeping(made, url)) for _ in range(PEERS)) * CLONES / PEERS
        bound = sum(COUNTDOWNS) + CLONES * (one + 2 * rejected) * 1.2
        yield row("backoff", ours, peer, "s", bound / peer)


def _clone(made: Service, url: str) -> None:
    outcome = made.outcome(made.clone(url, credential={"kind": "github_app"}))
    assert outcome.state == "SUCCESS", outcome


def _all(made: Service, url: str) -> None:
    jobs = [made.clone(url, credential={"kind": "github_app"}) for _ in range(CLONES)]
    outcomes = [made.outcome(job, timeout=600) for job in jobs]
    assert [outcome.result.get("attempts") for outcome in outcomes] == [3] * CLONES, outcomes


def _sleeping(made: Service, url: str) -> None:
    """What most clone helpers do: try, sleep, try again, in the process that was asked."""
    minted = made.services.github.mint("acme", "ferry", timeout=10)
    env = BASE_ENV | bound_helper(url, minted.token.reveal())
    target = Path(made.home) / f"peer-{time.monotonic_ns()}"
    for countdown in (*COUNTDOWNS, None):
        done = subprocess.run(["git", "clone", "-q", "--", url, str(target)], env=env, check=False, capture_output=True)
        if done.returncode == 0:
            return
        assert countdown is not None, done.stderr
        time.sleep(countdown)
