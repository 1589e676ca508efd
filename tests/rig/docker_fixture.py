"""Fixtures: a Docker engine and its images, once a session."""

import os

import pytest

from tests.rig import docker_engine as rig


@pytest.fixture(scope="session")
def docker_engine():
    """The engine's address. A missing engine skips here, and fails in CI."""
    engine = rig.engine()
    try:
        url = engine.__enter__()
    except rig.Unavailable as exc:
        if os.environ.get("CI") == "true":
            pytest.fail(str(exc))
        pytest.skip(str(exc))
    yield url
    engine.__exit__(None, None, None)


@pytest.fixture(scope="session")
def git_image(docker_engine):
    """An image with git and git-lfs."""
    return rig.IMAGE


@pytest.fixture(scope="session")
def busybox_image(docker_engine):
    """An image with a static busybox and nothing else: no git."""
    return rig.BUSYBOX_IMAGE
