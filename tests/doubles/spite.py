"""A server that refuses everybody, with a secret in every place where a refusal has room for one."""

import itertools
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class Spite:
    """``words`` is what everybody is told, with the ``statuses`` in turn."""

    def __init__(self) -> None:
        self.words, self.asked = "", 0
        self.statuses = itertools.cycle((400, 401, 404, 409, 429))
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def refuse(self) -> None:
                owner.asked += 1
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = json.dumps({key: f"{owner.words}: {key}" for key in ("message", "error", "detail", "code")})
                self.send_response(next(owner.statuses), "Refused")
                self.send_header("Content-Type", "application/json")
                self.send_header("Retry-After", owner.words)
                self.send_header("X-Request-Id", owner.words)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = refuse  # noqa: N815 - names of http.server

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
