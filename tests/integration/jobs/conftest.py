"""One service a module: Valkey, GitHub, workers."""

from collections.abc import Iterator

import pytest

from tests.rig.hosted import hosted_service
from tests.rig.jobs import Service, service
from worker.demo.broker import embedded


@pytest.fixture(scope="module")
def local_service(tmp_path_factory) -> Iterator[Service]:
    with (
        embedded() as url,
        service(tmp_path_factory.mktemp("service"), url) as made,
    ):
        made.start_worker()
        yield made


@pytest.fixture(scope="module")
def docker_service(tmp_path_factory, docker_engine, git_image) -> Iterator[Service]:
    with embedded() as url, service(
        tmp_path_factory.mktemp("service"), url,
        DOCKER_URL=docker_engine, DOCKER_IMAGE=git_image, DOCKER_NETWORK="host",
    ) as made:  # fmt: skip
        made.start_worker()
        yield made


@pytest.fixture(scope="module")
def daytona_service(tmp_path_factory) -> Iterator[Service]:
    with hosted_service("daytona", tmp_path_factory.mktemp("service")) as made:
        made.start_worker()
        yield made


@pytest.fixture(scope="module")
def e2b_service(tmp_path_factory) -> Iterator[Service]:
    with hosted_service("e2b", tmp_path_factory.mktemp("service")) as made:
        made.start_worker()
        yield made


@pytest.fixture(scope="module", params=["local", "docker", "daytona", "e2b"])
def provider(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def made(request, provider) -> Service:
    """The service of a provider; a module's tests run over each."""
    return request.getfixturevalue(f"{provider}_service")
