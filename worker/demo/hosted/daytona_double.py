"""A Daytona of our own on loopback: API and toolbox, as the unmodified ``daytona`` SDK calls them.

Set ``DAYTONA_API_URL`` (or our setting of that name) to :attr:`DaytonaDouble.api_url`.
"""

import json
import threading
import time
import uuid
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from worker.demo.hosted import toolbox
from worker.demo.hosted.machine import Machine, Machines
from worker.demo.hosted.web import Reply, Request, WebDouble

FOREVER = 365 * 24 * 3600.0
"""Seconds of a lease when a create sets no TTL."""
REASONS = {400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 409: "Conflict"}


class DaytonaDouble(WebDouble):
    """One organization. ``minute`` is how many seconds a minute of its leases lasts, for scaled time.

    ``boot`` is seconds in which a new sandbox is ``starting``; ``counts`` holds requests by operation.
    """

    def __init__(
        self, root: Path, *, api_key: str, minute: float = 60.0, boot: float = 0.0, visible_after: float = 0.0
    ) -> None:
        super().__init__()
        self.machines = Machines(root)
        self.counts: Counter[str] = Counter()
        self.api_key = api_key
        self.api_url = f"{self.url}/api"
        self.minute = minute
        self.boot = boot
        self.visible_after = visible_after
        self._lock = threading.Lock()

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        self.machines.end_all()

    def reply(self, request: Request) -> Reply:
        """Answer one request of the SDK."""
        if request.headers.get("Authorization") != f"Bearer {self.api_key}":
            return error(401, "Invalid credentials")
        match request.path.strip("/").split("/"):
            case ["api", "sandbox"]:
                self.counts[f"{request.method} sandbox"] += 1
                return self._create(request) if request.method == "POST" else self._list(request)
            case ["api", "sandbox", sandbox_id, *rest]:
                self.counts[" ".join([request.method, *rest[:1]])] += 1
                machine = self.machines.get(sandbox_id) or self.machines.by_name(sandbox_id)
                if machine is None:
                    return error(404, f"Sandbox with ID or name {sandbox_id} not found")
                return self._one(request, machine, rest)
            case ["toolbox", sandbox_id, *rest]:
                self.counts["/".join(["toolbox", *rest])] += 1
                machine = self.machines.get(sandbox_id)
                if machine is None:
                    return error(400, "no IP address found. Is the Sandbox started?", source="DAYTONA_PROXY")
                return toolbox.reply(request, machine, rest)
        return error(404, f"Cannot {request.method} {request.path}")

    def _create(self, request: Request) -> Reply:
        wanted = request.json()
        with self._lock:
            name = wanted.get("name") or f"sandbox-{uuid.uuid4()}"
            if self.machines.by_name(name):
                return error(409, f"Sandbox with name {name} already exists")
            ttl = wanted.get("ttlMinutes")
            machine = self.machines.make(
                str(uuid.uuid4()), seconds=ttl * self.minute if ttl else FOREVER, visible_after=self.visible_after,
                name=name, labels=wanted.get("labels") or {}, env=wanted.get("env") or {},
                kind=wanted.get("snapshot") or "default",
            )  # fmt: skip
        return Reply.json(200, self.about(machine))

    def _list(self, request: Request) -> Reply:
        wanted = json.loads(request.query.get("labels") or "{}")
        now = time.time()
        found = [
            machine
            for machine in self.machines.living()
            if machine.visible_from <= now and wanted.items() <= machine.labels.items()
        ]
        start = int(request.query.get("cursor") or 0)
        size = int(request.query.get("limit") or 100)
        items = [self.about(machine) for machine in found[start : start + size]]
        return Reply.json(200, {"items": items, "nextCursor": str(start + size) if start + size < len(found) else None})

    def _one(self, request: Request, machine: Machine, rest: list[str]) -> Reply:
        match (request.method, rest):
            case ("GET", []):
                return Reply.json(200, self.about(machine))
            case ("DELETE", []):
                machine.end()
                return Reply.json(200, self.about(machine))
            case ("POST", ["ttl", minutes]):
                machine.end_at = time.time() + (int(minutes) * self.minute or FOREVER)
            case ("POST", ["stop"]):
                machine.state = "stopped"
            case ("PUT", ["labels"]):
                machine.labels = request.json()["labels"]
                return Reply.json(200, {"labels": machine.labels})
            case ("POST", ["last-activity"]):
                return Reply(201)
            case ("POST", ["start" | "autostop" | "autodelete", *_]):
                pass
            case _:
                return error(404, f"Cannot {request.method} {request.path}")
        return Reply.json(200, self.about(machine))

    def about(self, machine: Machine) -> dict[str, Any]:
        """The sandbox as the API describes it; its types are strict."""
        state = "destroyed" if machine.state == "killed" else machine.state
        if state == "running":
            state = "starting" if time.time() < machine.created + self.boot else "started"
        return {
            "id": machine.id, "organizationId": "org", "name": machine.name, "user": "daytona", "env": machine.env,
            "labels": machine.labels, "public": False, "networkBlockAll": False, "kvm": False, "target": "local",
            "cpu": 1, "gpu": 0, "memory": 1, "disk": 3, "toolboxProxyUrl": f"{self.url}/toolbox", "state": state,
            "createdAt": _iso(machine.created), "autoDestroyAt": _iso(machine.end_at), "autoStopInterval": 0,
        }  # fmt: skip


def error(status: int, message: str, code: str | None = None, source: str = "DAYTONA_API") -> Reply:
    """An error as the API writes it."""
    body = {"statusCode": status, "message": message, "error": REASONS.get(status, "Error"), "source": source}
    return Reply.json(status, body | ({"code": code} if code else {}))


def _iso(epoch: float) -> str:
    return datetime.fromtimestamp(epoch, UTC).isoformat().replace("+00:00", "Z")
