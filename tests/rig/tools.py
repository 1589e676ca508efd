"""Tools for tests: packages made on the spot, calls of them, and a count of runs outside any sandbox."""

import json
import time
import uuid
from pathlib import Path
from typing import Any

from tests.rig.jobs import Service
from worker.tools.package import File, Package, pack

LIMIT = 8 * 1024 * 1024


def tool(script: str, *, effect: str | None = "write", **manifest: Any) -> Package:
    """A package whose entrypoint is one shell script."""
    fields = {
        "schema": 1, "name": "probe", "version": "1", "entrypoint": ["./run"], "input_schema": {"type": "object"},
        "output": "text", "output_limit": 65536, "timeout": 20, "env": ["COUNT", "SECRET", "GATE"], **manifest,
    }  # fmt: skip
    if effect is not None:
        fields["effect"] = effect
    return pack(fields, {"run": File(b"#!/bin/sh\n" + script.encode(), executable=True)}, limit=LIMIT)


COUNTED = 'echo run >>"$COUNT"; '
"""A tool's first words: it counts its own runs, outside the sandbox."""


def runs(count: Path) -> int:
    """How often a counted tool has run."""
    return len(count.read_text().splitlines()) if count.exists() else 0


def push(made: Service, package: Package) -> str:
    made.services.tools("default").put(package)
    return str(package.descriptor.reference)


def request(reference: str, *, provider: str = "local", run_id: str | None = None, **more: Any) -> dict[str, Any]:
    """A request with an id of its own, issued now."""
    return {
        "schema": 1, "run_id": run_id or f"run-{uuid.uuid4().hex[:8]}", "sandbox": {"provider": provider, "spec": {}},
        "tool": reference, "dispatch_id": f"call-{uuid.uuid4().hex[:12]}", "issued_at": time.time(), **more,
    }  # fmt: skip


def dispatch(made: Service, wanted: dict[str, Any], **options: Any) -> Any:
    sent = made.send("tool.dispatch", json.loads(json.dumps(wanted)), **options)
    sent.run_id = wanted["run_id"]
    return sent
