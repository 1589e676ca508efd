"""What benchmarks share."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.rig.docker_engine import IMAGE, engine
from tests.rig.jobs import Service, service
from worker.demo.broker import embedded


def row(name: str, ours: float, peer: float, unit: str, goal: float, *, at_least: bool = False) -> dict[str, Any]:
    """A line of the report; ``goal`` bounds the ratio ours / peer, from above unless ``at_least``."""
    ratio = ours / peer
    holds = ratio >= goal if at_least else ratio <= goal
    return {
        "name": name, "ours": round(ours, 4), "peer": round(peer, 4), "unit": unit, "ratio": round(ratio, 4),
        "goal": round(goal, 4), "holds": holds,
    }  # fmt: skip


def seconds(call: Callable[[], object]) -> float:
    start = time.monotonic()
    call()
    return time.monotonic() - start


@contextmanager
def local_service(**settings: str) -> Iterator[Service]:
    with (
        TemporaryDirectory() as home,
        embedded() as url,
        service(Path(home), url, **settings) as made,
    ):
        yield made


@contextmanager
def docker_service() -> Iterator[tuple[Service, str]]:
    with engine() as url, local_service(DOCKER_URL=url, DOCKER_IMAGE=IMAGE, DOCKER_NETWORK="host") as made:
        yield made, url
