"""The GitHub double with faults by rule, LFS, and a memory of every credential it was offered."""

import hashlib
import json
import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from worker.demo.github_double import GitHubDouble, Grant, Handler

LFS_TYPE = "application/vnd.git-lfs+json"


@dataclass(frozen=True, slots=True)
class Offer:
    """One request that a server saw."""

    host: str
    method: str
    path: str
    authorization: str | None


class CutError(ConnectionError):
    """The connection ends here, by a rule."""


@dataclass(slots=True, kw_only=True)
class Fault:
    """What goes wrong, and where.

    Matches ``path`` (a regular expression, searched in path and query), ``method`` and, with ``when``, the
    credential (``"anonymous"``, ``"credential"``). Of the matching requests it skips ``skip`` and acts on
    ``times`` (``None``: all). ``act`` gets the handler and says whether it has dealt with the request; what
    it has not goes on as usual.
    """

    act: Callable[["FaultyHandler"], bool]
    path: str = ""
    method: str | None = None
    when: str | None = None
    skip: int = 0
    times: int | None = 1
    seen: int = field(default=0, init=False)

    def claims(self, handler: "FaultyHandler") -> bool:
        """Whether this request is one to spoil; counts it."""
        kind = "credential" if handler.headers.get("Authorization") else "anonymous"
        if not re.search(self.path, handler.path) or self.method not in (None, handler.command):
            return False
        if self.when not in (None, kind):
            return False
        self.seen += 1
        return self.seen > self.skip and (self.times is None or self.seen <= self.skip + self.times)


def status(code: int, body: bytes = b"", kind: str = "text/plain", **headers: str) -> Callable[["FaultyHandler"], bool]:
    """Answer with a status; an underscore in a header's name stands for a dash."""

    def act(handler: "FaultyHandler") -> bool:
        b"".join(handler.body())
        handler.answer(code, body, kind, **headers)
        return True

    return act


def delay(seconds: float) -> Callable[["FaultyHandler"], bool]:
    """Answer late; sooner when the double closes."""

    def act(handler: "FaultyHandler") -> bool:
        handler.double.closing.wait(seconds)
        return False

    return act


def close_before() -> Callable[["FaultyHandler"], bool]:
    """Hang up without an answer."""

    def act(handler: "FaultyHandler") -> bool:
        raise CutError

    return act


def close_after() -> Callable[["FaultyHandler"], bool]:
    """Answer as usual, then hang up though the connection was to be kept."""

    def act(handler: "FaultyHandler") -> bool:
        handler.close_connection = True
        return False

    return act


def reset() -> Callable[["FaultyHandler"], bool]:
    """End the connection with RST."""

    def act(handler: "FaultyHandler") -> bool:
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise CutError

    return act


def lose_reply() -> Callable[["FaultyHandler"], bool]:
    """Do what was asked, then hang up before a byte of the answer."""

    def act(handler: "FaultyHandler") -> bool:
        handler.mute = True
        return False

    return act


def cut_body(after: int) -> Callable[["FaultyHandler"], bool]:
    """Send that many bytes of the pack, then hang up."""

    def act(handler: "FaultyHandler") -> bool:
        handler.cut_after = after
        return False

    return act


def stall_body(after: int) -> Callable[["FaultyHandler"], bool]:
    """Send that many bytes of the pack, then nothing until the double closes."""

    def act(handler: "FaultyHandler") -> bool:
        handler.stall_after = after
        return False

    return act


def garbage(
    body: bytes = b"\x00\xffnot what you think",
    code: int = 200,
    kind: str = "application/x-git-upload-pack-advertisement",
) -> Callable[["FaultyHandler"], bool]:
    """Answer with bytes that make no sense. As ``text/plain`` git takes them for an empty repository, rc 0."""
    return status(code, body, kind)


def truncated(body: bytes, code: int = 200) -> Callable[["FaultyHandler"], bool]:
    """Promise a whole body, send half of it, hang up."""

    def act(handler: "FaultyHandler") -> bool:
        b"".join(handler.body())
        handler.send_response(code)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[: len(body) // 2])
        raise CutError

    return act


def redirect(base: str, old: str = "", new: str = "", code: int = 301) -> Callable[["FaultyHandler"], bool]:
    """Point to the same path below ``base`` (another host, or this one), with ``old`` replaced by ``new``."""

    def act(handler: "FaultyHandler") -> bool:
        b"".join(handler.body())
        handler.answer(code, Location=base + (handler.path.replace(old, new, 1) if old else handler.path))
        return True

    return act


class FaultyHandler(Handler):
    """One connection of :class:`FaultyGitHub`."""

    double: "FaultyGitHub"
    cut_after: int | None = None
    stall_after: int | None = None
    mute = False
    sent = 0

    def handle_request(self) -> None:
        self.cut_after = self.stall_after = None
        self.mute, self.sent = False, 0
        host, authorization = self.headers.get("Host", ""), self.headers.get("Authorization")
        with self.double.lock:
            self.double.offers.append(Offer(host, self.command, self.path, authorization))
            fault = next((fault for fault in self.double.faults if fault.claims(self)), None)
        try:
            if fault is None or not fault.act(self):
                self.handle_well()
        except CutError:
            self.close_connection = True
            self.connection.close()

    do_GET = do_POST = do_PUT = do_DELETE = handle_request  # noqa: N815 - names of http.server

    def handle_well(self) -> None:
        path = urlsplit(self.path).path
        if batch := re.fullmatch(r"/([\w.-]+/[\w.-]+?)(?:\.git)?/info/lfs/objects/batch", path):
            self._lfs_batch(batch[1])
        elif found := re.fullmatch(r"/_lfs/([\w.-]+/[\w.-]+)/([0-9a-f]{64})", path):
            self._lfs_object(found[1], found[2])
        else:
            super().handle_request()

    def send_response(self, code: int, message: str | None = None) -> None:
        if self.mute:
            raise CutError
        super().send_response(code, message)

    def send_pack(self, data: bytes) -> None:
        for limit in (self.cut_after, self.stall_after):
            if limit is not None and self.sent + len(data) > limit:
                super().send_pack(data[: max(1, limit - self.sent)])
                self.wfile.flush()
                if limit == self.stall_after:
                    self.double.closing.wait()
                raise CutError
        self.sent += len(data)
        super().send_pack(data)

    def _refused(self, repository: str) -> bool:
        token = self.credential()
        if not token and repository.lower() not in self.double.public:
            self.answer(401, b"{}", LFS_TYPE, LFS_Authenticate='Basic realm="Git LFS"')
            return True
        if token and not self.double.admits(token, repository):
            self.answer(404, b'{"message": "Not Found"}', LFS_TYPE)
            return True
        return False

    def _lfs_batch(self, repository: str) -> None:
        wanted = json.loads(b"".join(self.body()))
        if self._refused(repository):
            return
        objects = [self._lfs_entry(repository, entry) for entry in wanted["objects"]]
        self.answer(200, json.dumps({"transfer": "basic", "objects": objects}).encode(), LFS_TYPE)

    def _lfs_entry(self, repository: str, entry: dict) -> dict:
        known = entry["oid"] in self.double.lfs_objects
        href = f"{self.double.lfs_href_base or self.double.url}/_lfs/{repository}/{entry['oid']}"
        header = {"Authorization": self.headers["Authorization"]} if self.headers["Authorization"] else {}
        if self.double.lfs_href_base:
            header = {}
        found = {"actions": {"download": {"href": href, "header": header}}, "authenticated": True}
        return entry | (found if known else {"error": {"code": 404, "message": "Object does not exist"}})

    def _lfs_object(self, repository: str, oid: str) -> None:
        if self._refused(repository):
            return
        data = self.double.lfs_objects.get(oid)
        if data is None:
            self.answer(404)
        else:
            self.answer(200, data, "application/octet-stream")


class FaultyGitHub(GitHubDouble):
    """The double, extended.

    ``offers`` is every request with what it offered; ``authorizations(host)`` the credentials one host saw.
    ``static_tokens`` maps a token to the repository it opens, without any lag. ``lfs_href_base`` makes the
    batch answer point to objects on another host (with no credential of ours in the answer).
    """

    def __init__(self, root: Path, *, static_tokens: Mapping[str, str] | None = None, **options) -> None:
        super().__init__(root, **options)
        self.faults: list[Fault] = []
        self.offers: list[Offer] = []
        self.closing = threading.Event()
        self.lfs_objects: dict[str, bytes] = {}
        self.lfs_href_base: str | None = None
        self.grants |= {token: Grant(repository=name) for token, name in (static_tokens or {}).items()}

    def handler_class(self) -> type[Handler]:
        return FaultyHandler

    def __exit__(self, *exc: object) -> None:
        self.closing.set()
        super().__exit__(*exc)

    def fault(self, act: Callable[[FaultyHandler], bool], **match) -> Fault:
        """Add a rule; the first that claims a request acts on it."""
        rule = Fault(act=act, **match)
        with self.lock:
            self.faults.append(rule)
        return rule

    def reject_after_mint(self, code: int, *, times: int | None = 1, body: bytes = b"") -> Fault:
        """Answer ``code`` (401, 403, 404) to git requests that carry a credential."""
        headers = {"WWW_Authenticate": 'Basic realm="GitHub"'} if code == 401 else {}
        return self.fault(
            status(code, body, **headers), path=r"/info/refs|/git-upload-pack", when="credential", times=times
        )

    def add_lfs_object(self, data: bytes) -> bytes:
        """Serve ``data`` over LFS; its pointer file."""
        oid = hashlib.sha256(data).hexdigest()
        self.lfs_objects[oid] = data
        return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(data)}\n".encode()

    def authorizations(self, host: str | None = None) -> list[str]:
        """Every Authorization header, in order; of requests to ``host`` (``name:port``) if given."""
        with self.lock:
            return [o.authorization for o in self.offers if o.authorization and host in (None, o.host)]

    def requests(self) -> Counter[tuple[str, str]]:
        """How often each (method, path) was asked for."""
        with self.lock:
            return Counter((offer.method, urlsplit(offer.path).path) for offer in self.offers)
