"""An E2B of our own on loopback: control plane and envd, as the unmodified ``e2b`` SDK calls them.

Set ``E2B_API_URL`` and ``E2B_SANDBOX_URL`` (or our settings of those names) to :attr:`E2BDouble.url`.
"""

import secrets
import threading
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from worker.demo.hosted import envd
from worker.demo.hosted.machine import Machine, Machines
from worker.demo.hosted.web import Reply, Request, WebDouble

ENVD_VERSION = "0.6.9"
DEFAULT_TIMEOUT = 300
"""Seconds of lease when a create or a connect names none."""


class E2BDouble(WebDouble):
    """One account. ``counts`` holds requests by operation; ``keys`` what each idempotency key was used for.

    ``honours_keys=False`` is a server that knows no such keys; ``connect_resets`` one whose connect may shorten a
    lease (E2B#1055); ``visible_after`` is seconds until lists show a new sandbox.
    """

    def __init__(
        self,
        root: Path,
        *,
        api_key: str,
        honours_keys: bool = True,
        visible_after: float = 0.0,
        connect_resets: bool = False,
    ) -> None:
        super().__init__()
        self.machines = Machines(root)
        self.counts: Counter[str] = Counter()
        self.api_key = api_key
        self.honours_keys = honours_keys
        self.visible_after = visible_after
        self.connect_resets = connect_resets
        self.keys: dict[str, tuple[bytes, dict[str, Any]]] = {}
        self._tokens: dict[str, str] = {}
        self._lock = threading.Lock()

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        self.machines.end_all()

    def reply(self, request: Request) -> Reply:
        """Answer one request of the SDK."""
        if sandbox_id := request.headers.get("E2b-Sandbox-Id"):
            self.counts["envd " + request.path] += 1
            return self._envd(request, sandbox_id)
        if request.headers.get("X-API-KEY") != self.api_key:
            return error(401, "Invalid API key")
        parts = [part for part in request.path.split("/") if part and part != "v2"]
        self.counts[f"{request.method} {parts[-1] if len(parts) > 2 else 'sandboxes'}"] += 1
        match (request.method, parts):
            case ("POST", ["sandboxes"]):
                return self._create(request)
            case ("GET", ["sandboxes"]):
                return self._list(request)
            case (_, ["sandboxes", sandbox_id, *rest]):
                machine = self.machines.get(sandbox_id)
                return self._one(request, machine, rest) if machine else error(404, f"Sandbox {sandbox_id} not found")
        return error(404, "no such route")

    def _create(self, request: Request) -> Reply:
        key = request.headers.get("Idempotency-Key")
        with self._lock:
            if key and self.honours_keys and key in self.keys:
                body, made = self.keys[key]
                if body != request.body:
                    return error(409, "the key was used for another request", "idempotency_request_mismatch")
                return Reply.json(201, made)
            wanted = request.json()
            machine = self.machines.make(
                "i" + secrets.token_hex(10), seconds=wanted.get("timeout", DEFAULT_TIMEOUT),
                visible_after=self.visible_after, labels=wanted.get("metadata", {}),
                env=wanted.get("envVars") or {}, kind=wanted["templateID"],
            )  # fmt: skip
            self._tokens[machine.id] = secrets.token_hex(16)
            made = self._made(machine)
            if key:
                self.keys[key] = (request.body, made)
        return Reply.json(201, made)

    def _list(self, request: Request) -> Reply:
        wanted = {unquote(k): unquote(v) for k, v in parse_qsl(request.query.get("metadata", ""))}
        now = datetime.now(UTC).timestamp()
        found = [
            _info(machine)
            for machine in self.machines.living()
            if machine.visible_from <= now and wanted.items() <= machine.labels.items()
        ]
        start = int(request.query.get("nextToken") or 0)
        size = int(request.query.get("limit") or 100)
        reply = Reply.json(200, found[start : start + size])
        if start + size < len(found):
            reply.headers["x-next-token"] = str(start + size)
        return reply

    def _one(self, request: Request, machine: Machine, rest: list[str]) -> Reply:
        now = datetime.now(UTC).timestamp()
        match (request.method, rest):
            case ("GET", []):
                return Reply.json(200, _info(machine))
            case ("DELETE", []):
                machine.end()
                return Reply(204)
            case ("POST", ["timeout"]):
                machine.end_at = now + request.json()["timeout"]
                return Reply(204)
            case ("POST", ["connect"]):
                end_at = now + request.json().get("timeout", DEFAULT_TIMEOUT)
                machine.end_at = end_at if self.connect_resets else max(machine.end_at, end_at)
                return Reply.json(200, self._made(machine))
        return error(404, "no such route")

    def _made(self, machine: Machine) -> dict[str, Any]:
        return {
            "templateID": machine.kind, "sandboxID": machine.id, "clientID": "c0", "envdVersion": ENVD_VERSION,
            "envdAccessToken": self._tokens[machine.id], "domain": None,
        }  # fmt: skip

    def _envd(self, request: Request, sandbox_id: str) -> Reply:
        machine = self.machines.get(sandbox_id)
        if machine is None:
            message = "The sandbox was not found"
            return Reply.json(502, {"sandboxId": sandbox_id, "message": message, "code": 502})
        if request.path == "/health":
            return Reply(204)
        if request.headers.get("X-Access-Token") != self._tokens[sandbox_id]:
            return Reply.json(401, {"code": "unauthenticated", "message": "unauthorized access"})
        return envd.reply(request, machine)


def error(status: int, message: str, code: str | None = None) -> Reply:
    """An error of the control plane: JSON always."""
    return Reply.json(status, {"code": status, "message": message} | ({"error_code": code} if code else {}))


def _info(machine: Machine) -> dict[str, Any]:
    return {
        "templateID": machine.kind, "sandboxID": machine.id, "clientID": "c0", "cpuCount": 2, "memoryMB": 512,
        "diskSizeMB": 1024, "state": "running", "envdVersion": ENVD_VERSION, "metadata": machine.labels,
        "startedAt": _iso(machine.created), "endAt": _iso(machine.end_at),
    }  # fmt: skip


def _iso(epoch: float) -> str:
    return datetime.fromtimestamp(epoch, UTC).isoformat().replace("+00:00", "Z")
