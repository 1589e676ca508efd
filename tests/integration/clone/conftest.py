"""A GitHub of our own and a local sandbox."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles.github import FaultyGitHub
from tests.integration.clone.bench import Bench, local_sandbox


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    remotes = tmp_path / "remotes"
    remotes.mkdir()
    with FaultyGitHub(remotes, app_id="1", public_key="none") as hub:
        yield Bench(hub=hub, remotes=remotes, sandbox=local_sandbox(tmp_path / "sandboxes"))
