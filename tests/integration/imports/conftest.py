"""An origin, an agent's workspace and a place for quarantines."""

from pathlib import Path

import pytest

from tests.integration.imports.workshop import Bench, Repo, Workspace


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    root = tmp_path / "bench"
    root.mkdir()
    return Bench(root)


@pytest.fixture
def origin(tmp_path: Path) -> Repo:
    repo = Repo.init(tmp_path / "origin")
    repo.commit("base", f="one\n", **{"d/e": "deep\n", "gone": "x\n", "keep": "".join(f"{n}\n" for n in range(30))})
    return repo


@pytest.fixture
def workspace(origin: Repo, tmp_path: Path) -> Workspace:
    return Workspace.clone(origin, tmp_path / "workspace")
