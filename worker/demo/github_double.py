"""A GitHub of our own on loopback: an App that mints tokens, and real git over smart HTTP.

Faithful where it matters to a client: an anonymous request is challenged with 401, a token that is unknown,
revoked, for another repository or not yet replicated gets GitHub's 404. Bare repositories lie at
``<root>/<owner>/<repo>.git`` and are served by ``git http-backend``.
"""

import base64
import json
import re
import secrets
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any, Self
from urllib.parse import urlsplit

from worker.demo.git_backend import CHUNK, backend

TOKEN_SECONDS = 3600
"""Life of an installation token, as GitHub's."""
INSTALLATION_ID = 4711
NOT_FOUND = (404, {"message": "Not Found"})
_GIT_PATH = re.compile(r"/(?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?(?P<rest>/(?:info/refs|git-(?:upload|receive)-pack))")


def create_app_key() -> tuple[str, str]:
    """A new RSA key pair for an App: (private, public), both PEM."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - only who makes keys needs it
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415 - same

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


@dataclass(slots=True, kw_only=True)
class Grant:
    """A token the double knows. ``repository`` is ``owner/repo``; ``usable_at`` is monotonic seconds."""

    repository: str
    usable_at: float = 0.0
    rejections_left: int = 0
    revoked: bool = False

    def admits(self, repository: str) -> bool:
        """Whether the token opens ``repository`` now; counts down a lag that is given in rejections."""
        if self.revoked or self.repository.lower() != repository.lower():
            return False
        if self.rejections_left > 0:
            self.rejections_left -= 1
            return False
        return time.monotonic() >= self.usable_at


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news; anything else is."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class GitHubDouble:
    """Serves ``root`` while the context is open.

    A minted token is rejected for ``lag_seconds`` after its mint and for its first ``lag_rejections`` uses.
    ``public`` names repositories (``owner/repo``) that anybody may read. ``counts`` holds ``mints``,
    ``revokes``, ``git_requests`` and ``rejections``.
    """

    def __init__(
        self,
        root: Path,
        *,
        app_id: str,
        public_key: str,
        lag_seconds: float = 0.0,
        lag_rejections: int = 0,
        public: Iterable[str] = (),
    ) -> None:
        self.root = root
        self.app_id = app_id
        self.public_key = public_key
        self.lag_seconds = lag_seconds
        self.lag_rejections = lag_rejections
        self.public = {name.lower() for name in public}
        self.counts: Counter[str] = Counter()
        self.grants: dict[str, Grant] = {}
        self.lock = threading.Lock()
        handler = type("Handler", (self.handler_class(),), {"double": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True, name="github-double"
        )

    def handler_class(self) -> type["Handler"]:
        """What answers requests; a test's double gives a class with more in it."""
        return Handler

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The root of the API and of all git URLs."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def git_url(self, owner: str, repo: str) -> str:
        """The clone URL of a repository."""
        return f"{self.url}/{owner}/{repo}.git"

    def has(self, repository: str) -> bool:
        """Whether ``owner/repo`` is there."""
        return (self.root / f"{repository}.git" / "HEAD").is_file()

    def grant(self, token: str, repository: str, *, lag: bool = False) -> None:
        """Make a token known for one repository; ``lag`` makes it replicate like a minted one."""
        self.grants[token] = Grant(
            repository=repository,
            usable_at=time.monotonic() + self.lag_seconds if lag else 0.0,
            rejections_left=self.lag_rejections if lag else 0,
        )

    def mint(self, repository: str) -> dict[str, str]:
        """The body of GitHub's answer to a mint."""
        token = f"ghs_{secrets.token_urlsafe(48)}.{secrets.token_urlsafe(200)}.{secrets.token_urlsafe(64)}"
        with self.lock:
            self.counts["mints"] += 1
            self.grant(token, repository, lag=True)
        end = datetime.now(UTC) + timedelta(seconds=TOKEN_SECONDS)
        return {"token": token, "expires_at": end.strftime("%Y-%m-%dT%H:%M:%SZ")}

    def revoke(self, token: str) -> bool:
        """End a token; whether it was alive."""
        with self.lock:
            grant = self.grants.get(token)
            if grant is None or grant.revoked:
                return False
            grant.revoked = True
            self.counts["revokes"] += 1
            return True

    def admits(self, token: str, repository: str) -> bool:
        """Whether a git request with this token is served now."""
        with self.lock:
            grant = self.grants.get(token)
            admitted = grant is not None and grant.admits(repository)
            self.counts["rejections"] += not admitted
            return admitted


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    double: GitHubDouble
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing: a request line is no business of the terminal."""

    def handle_request(self) -> None:
        """Route one request."""
        path = urlsplit(self.path).path
        git = _GIT_PATH.fullmatch(path)
        if git:
            self._git(git["name"], git["rest"])
        elif self.command == "DELETE" and path == "/installation/token":
            self._revoke()
        else:
            self._api(path)

    do_GET = do_POST = do_DELETE = handle_request  # noqa: N815 - http.server's names

    def answer(self, status: int, body: bytes = b"", kind: str = "text/plain", **headers: str) -> None:
        """Send a whole answer. An underscore in a header's name stands for a dash."""
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def answer_json(self, status: int, body: object) -> None:
        """Send JSON."""
        self.answer(status, json.dumps(body).encode(), "application/json; charset=utf-8")

    def credential(self) -> str:
        """The password or the bearer token of the request; empty if there is none."""
        scheme, _, value = self.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "basic":
            decoded = base64.b64decode(value + "==").decode(errors="replace")
            return decoded.partition(":")[2]
        return value.strip() if scheme.lower() in ("bearer", "token") else ""

    def body(self) -> Iterator[bytes]:
        """The request's body, chunked or not. It can be read once."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline(64).split(b";")[0], 16):
                yield self.rfile.read(size)
                self.rfile.readline(64)
            self.rfile.readline(64)
        else:
            left = int(self.headers.get("Content-Length") or 0)
            while left and (data := self.rfile.read(min(left, CHUNK))):
                left -= len(data)
                yield data

    def _api(self, path: str) -> None:
        body = b"".join(self.body())
        if not self._is_app():
            self.answer_json(401, {"message": "A JSON web token could not be decoded"})
        elif found := re.fullmatch(r"/repos/([\w.-]+/[\w.-]+)/installation", path):
            known = self.double.has(found[1])
            self.answer_json(*((200, {"id": INSTALLATION_ID, "suspended_at": None}) if known else NOT_FOUND))
        elif path == f"/app/installations/{INSTALLATION_ID}/access_tokens":
            self._mint(json.loads(body or b"{}"))
        else:
            self.answer_json(*NOT_FOUND)

    def _is_app(self) -> bool:
        import jwt  # noqa: PLC0415 - only the requests of an App need it

        options: Any = {"require": ["iat", "exp", "iss"]}
        try:
            jwt.decode(
                self.credential(),
                self.double.public_key,
                algorithms=["RS256"],
                issuer=self.double.app_id,
                options=options,
            )
        except jwt.PyJWTError:
            return False
        return True

    def _mint(self, wanted: dict[str, Any]) -> None:
        names = wanted.get("repositories") or []
        owners = (path.parent.name for path in self.double.root.glob(f"*/{names[0]}.git")) if len(names) == 1 else ()
        owner = next(iter(owners), None)
        if owner is None or wanted.get("permissions") != {"contents": "read"}:
            self.answer_json(422, {"message": "There is at least one repository that does not exist"})
        else:
            self.answer_json(201, self.double.mint(f"{owner}/{names[0]}"))

    def _revoke(self) -> None:
        if self.double.revoke(self.credential()):
            self.answer(HTTPStatus.NO_CONTENT)
        else:
            self.answer_json(401, {"message": "Bad credentials"})

    def _git(self, name: str, rest: str) -> None:
        with tempfile.TemporaryFile() as spool:
            spool.writelines(self.body())
            spool.seek(0)
            with self.double.lock:
                self.double.counts["git_requests"] += 1
            token = self.credential()
            if name.lower() not in self.double.public and not token:
                self.answer(401, b"Authentication required\n", WWW_Authenticate='Basic realm="GitHub"')
            elif self.double.has(name) and (not token or self.double.admits(token, name)):
                self._backend(f"/{name}.git{rest}", spool)
            else:
                self.answer(404, b"Repository not found.\n")

    def _backend(self, path: str, spool: IO[bytes]) -> None:
        query = urlsplit(self.path).query
        answer = backend(self.double.root, self.command, path, query=query, headers=self.headers, body=spool)
        with answer as (status, headers, output):
            self.send_response(status)
            for header in headers.items():
                self.send_header(*header)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for data in output:
                self.send_pack(data)
            self.wfile.write(b"0\r\n\r\n")

    def send_pack(self, data: bytes) -> None:
        """Send one piece of what git says."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
