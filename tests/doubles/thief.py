"""A server on another port that asks everybody for a credential and remembers what it was offered."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from tests.doubles.github import Offer


class _Handler(BaseHTTPRequestHandler):
    thief: "Thief"
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def _ask(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        offer = Offer(self.headers.get("Host", ""), self.command, self.path, self.headers.get("Authorization"))
        with self.thief.lock:
            self.thief.offers.append(offer)
        body = b"Who are you?\n"
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="thief"')
        self.send_header("LFS-Authenticate", 'Basic realm="thief"')
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = _ask  # noqa: N815 - names of http.server


class Thief:
    """Serves while the context is open. ``offers`` is all it saw; ``loot`` the credentials among it."""

    def __init__(self) -> None:
        self.offers: list[Offer] = []
        self.lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"thief": self}))
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True, name="thief"
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def loot(self) -> list[str]:
        with self.lock:
            return [offer.authorization for offer in self.offers if offer.authorization]
