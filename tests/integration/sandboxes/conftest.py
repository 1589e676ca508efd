"""One set of behaviours for every driver; ``provider`` is each of them in turn."""

import uuid

import pytest

from tests.rig import hosted
from tests.rig.docker_fixture import busybox_image, docker_engine, git_image  # noqa: F401 - fixtures
from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN, Spec
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.docker.provider import DockerProvider
from worker.sandboxes.local.provider import LocalProvider
from worker.sandboxes.registry import Registry
from worker.sandboxes.settings import DockerSettings


def new_labels():
    return {LABEL_RUN: f"run-{uuid.uuid4()}", LABEL_REQUEST: f"request-{uuid.uuid4()}"}


def soon(seconds=30.0):
    return Deadline.after(seconds)


def docker_settings(url, image, **more):
    return DockerSettings(url=url, image=image, network="host", **more)


def release_all(provider, labels):
    for sandbox in provider.find({LABEL_RUN: labels[LABEL_RUN]}, deadline=soon()):
        sandbox.release(deadline=soon())


@pytest.fixture
def labels():
    return new_labels()


@pytest.fixture
def docker_provider(docker_engine, git_image, labels):  # noqa: F811
    provider = DockerProvider(docker_settings(docker_engine, git_image))
    yield provider
    release_all(provider, labels)


@pytest.fixture
def local_provider(tmp_path, labels):
    provider = LocalProvider(tmp_path / "sandboxes")
    yield provider
    release_all(provider, labels)


@pytest.fixture
def e2b_double(tmp_path):
    with hosted.double("e2b", tmp_path / "e2b") as double:
        yield double


@pytest.fixture
def e2b_provider(e2b_double):
    return Registry(hosted.provider_settings("e2b", e2b_double)).get("e2b")


@pytest.fixture
def daytona_double(tmp_path):
    with hosted.double("daytona", tmp_path / "daytona") as double:
        yield double


@pytest.fixture
def daytona_provider(daytona_double):
    return Registry(hosted.provider_settings("daytona", daytona_double)).get("daytona")


@pytest.fixture(params=hosted.NAMES)
def hosted_name(request):
    return request.param


@pytest.fixture
def hosted_double(request, hosted_name):
    """The double behind ``hosted_provider``."""
    return request.getfixturevalue(f"{hosted_name}_double")


@pytest.fixture
def hosted_provider(request, hosted_name):
    """Each hosted provider in turn."""
    return request.getfixturevalue(f"{hosted_name}_provider")


@pytest.fixture(params=["local", pytest.param("docker", marks=pytest.mark.docker), "daytona", "e2b"])
def provider(request):
    return request.getfixturevalue(f"{request.param}_provider")


@pytest.fixture(
    params=[
        "local",
        pytest.param("git_image", marks=pytest.mark.docker),
        pytest.param("busybox_image", marks=pytest.mark.docker),
        "daytona",
        "e2b",
    ],
    scope="module",
)
def sandbox(request, tmp_path_factory):
    """A sandbox of each kind of shell, shared by the tests of a module."""
    labels = new_labels()
    if request.param in hosted.NAMES:
        with hosted.double(request.param, tmp_path_factory.mktemp(request.param)) as double:
            provider = Registry(hosted.provider_settings(request.param, double)).get(request.param)
            yield provider.create(Spec(), labels, deadline=soon())
        return
    if request.param == "local":
        provider = LocalProvider(tmp_path_factory.mktemp("local"))
    else:
        engine, image = request.getfixturevalue("docker_engine"), request.getfixturevalue(request.param)
        provider = DockerProvider(docker_settings(engine, image))
    yield provider.create(Spec(), labels, deadline=soon())
    release_all(provider, labels)
