"""A GitHub of our own, and a sandbox of each provider."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles.github import FaultyGitHub
from tests.integration.clone.bench import RUN, Bench, local_sandbox
from tests.rig import hosted
from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN, Sandbox, Spec
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.registry import Registry


@pytest.fixture(params=["local", *hosted.NAMES])
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sandbox]:
    """A sandbox of each provider whose files lie on this machine: tests look at them from outside, too."""
    if request.param == "local":
        yield local_sandbox(tmp_path / "sandboxes")
        return
    with hosted.double(request.param, tmp_path / request.param) as double:
        provider = Registry(hosted.provider_settings(request.param, double)).get(request.param)
        labels = {LABEL_RUN: RUN, LABEL_REQUEST: "r1"}
        yield provider.create(Spec(), labels, deadline=Deadline.after(30))


@pytest.fixture
def bench(tmp_path: Path, sandbox: Sandbox) -> Iterator[Bench]:
    remotes = tmp_path / "remotes"
    remotes.mkdir()
    with FaultyGitHub(remotes, app_id="1", public_key="none") as hub:
        yield Bench(hub=hub, remotes=remotes, sandbox=sandbox)
