"""A small HTTP server that a double is put behind: whole requests in, whole or streamed replies out."""

import json
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass(frozen=True, slots=True)
class Request:
    """One request; ``path`` is unquoted, header names are as :class:`email.message.Message` finds them."""

    method: str
    path: str
    query: dict[str, str]
    headers: Any
    body: bytes

    def json(self) -> Any:
        """The body as JSON; an empty one is an empty object."""
        return json.loads(self.body or b"{}")


@dataclass(slots=True)
class Reply:
    """One reply; a body that is no ``bytes`` is sent in chunks as it comes. ``cut_after`` bytes the line is cut."""

    status: int = 200
    body: bytes | Iterable[bytes] = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None

    @classmethod
    def json(cls, status: int, value: Any) -> "Reply":
        """A JSON body."""
        return cls(status, json.dumps(value).encode(), {"Content-Type": "application/json"})


class CutError(ConnectionError):
    """The connection is to end here, without a word more."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    double: "WebDouble"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news; anything else is."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class WebDouble:
    """Serves on loopback while the context is open; subclasses answer."""

    def __init__(self) -> None:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.double = self
        self.latency = 0.0
        """Seconds every reply takes on its way."""
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def reply(self, request: Request) -> Reply:
        """Answer one request."""
        raise NotImplementedError


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 65536
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class has it so
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer, whatever the method."""
        parts = urlsplit(self.path)
        query = {key: values[-1] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
        request = Request(self.command, unquote(parts.path), query, self.headers, self._body())
        time.sleep(self.server.double.latency)
        try:
            self._send(self.server.double.reply(request))
        except ConnectionError:
            self.close_connection = True

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - http.server has it so

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = bytearray()
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return bytes(body)

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        whole = isinstance(reply.body, bytes)
        if isinstance(reply.body, bytes) and reply.status != 204:
            self.send_header("Content-Length", str(len(reply.body)))
        elif not whole:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in _cut(reply):
            self.wfile.write(piece if whole else b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.flush()
        if not whole:
            self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()


def _cut(reply: Reply) -> Iterator[bytes]:
    """The pieces of the body; raises :class:`CutError` where the line is to be cut."""
    left = reply.cut_after
    for piece in [reply.body] if isinstance(reply.body, bytes) else reply.body:
        if left is not None and len(piece) >= left:
            yield piece[:left]
            raise CutError
        left = None if left is None else left - len(piece)
        if piece:
            yield piece
    if left is not None:
        raise CutError
