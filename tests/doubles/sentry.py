"""A Sentry that keeps what it is sent: the envelope endpoint on loopback, and the same as one that never answers."""

import gzip
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FakeSentry:
    """``dsn`` goes into a file for the worker; ``raw`` holds every body, unpacked."""

    def __init__(self) -> None:
        self.raw: list[bytes] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                owner.raw.append(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.dsn = f"http://publickey@127.0.0.1:{self._server.server_port}/7"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def events(self) -> list[dict[str, Any]]:
        """Every event, in the order of arrival."""
        return [event for body in list(self.raw) for event in _events(body)]

    def of(self, task_id: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("tags", {}).get("task_id") == task_id]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _events(envelope: bytes) -> Iterator[dict[str, Any]]:
    """The items of type event: a header line with the length, then the payload."""
    _, _, rest = envelope.partition(b"\n")
    while rest.strip():
        line, _, rest = rest.partition(b"\n")
        header = json.loads(line)
        length = header.get("length")
        payload, rest = (rest[:length], rest[length + 1 :]) if length is not None else (rest, b"")
        if header["type"] == "event":
            yield json.loads(payload)


@contextmanager
def fake_sentry() -> Iterator[FakeSentry]:
    made = FakeSentry()
    try:
        yield made
    finally:
        made.close()


@contextmanager
def dead_sentry() -> Iterator[str]:
    """The DSN of a server that takes connections and never answers."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(16)
        yield f"http://publickey@127.0.0.1:{deaf.getsockname()[1]}/7"
