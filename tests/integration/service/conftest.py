"""A service with jobs of every ending, and what watches it."""

from collections.abc import Iterator

import pytest

from tests.rig.flower import Flower
from tests.rig.jobs import Service, service
from worker.demo.broker import embedded


@pytest.fixture(scope="module")
def local_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with embedded() as url, service(tmp_path_factory.mktemp("service"), url) as made:
        made.start_worker()
        yield made


@pytest.fixture(scope="module")
def flower(local_service: Service) -> Iterator[Flower]:
    made = Flower(local_service.home, local_service.env)
    yield made
    made.stop()
