"""A service for each provider, whose leases are short."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.jobs import Service, service
from worker.demo.broker import embedded


@pytest.fixture(params=["local", "docker"])
def made(request, tmp_path: Path) -> Iterator[Service]:
    (tmp_path / "scratch").mkdir()
    settings = {"LEASE": "3", "SCRATCH_DIR": str(tmp_path / "scratch")}
    if request.param == "docker":
        engine, image = request.getfixturevalue("docker_engine"), request.getfixturevalue("git_image")
        settings |= {"DOCKER_URL": engine, "DOCKER_IMAGE": image, "DOCKER_NETWORK": "host"}
    with embedded() as url, service(tmp_path, url, **settings) as made:
        made.provider = request.param
        yield made
