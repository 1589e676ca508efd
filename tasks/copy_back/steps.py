"""The steps of one attempt: capture, transport, import, deliver. Each may be repeated."""

import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path

from tasks.copy_back.request import CopyBackRequest
from worker.imports.branches import Moved, move_branch
from worker.imports.changes import Changes, changes
from worker.imports.collect import Capture, fetch_capture
from worker.imports.delivery import Delivered, deliver_refs
from worker.imports.intake import Imported, import_part
from worker.imports.limits import Limits, refused
from worker.imports.manifest import Origin, manifest, stat
from worker.imports.repository import HostRepository, host_repository
from worker.retrying.attempt import Attempt
from worker.retrying.services import Services
from worker.sandboxes.base import Sandbox
from worker.sandboxes.deadline import Deadline
from worker.snapshots.capture import MAX_FILE, Captured, CaptureRequest, capture, discard
from worker.snapshots.format import NO_LOSS
from worker.stores.artifacts import Artifact

CLEAN_UP = 10.0
"""Seconds for removing a capture that was read, while it is imported; the next one sweeps what stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What one copy-back brought out."""

    capture: Capture
    parts: tuple[Imported, ...]
    diffs: tuple[Changes, ...]
    artifact: Artifact
    delivered: Delivered | None
    moved: Moved | None


@dataclass(frozen=True, slots=True)
class CopyBack:
    """One attempt: its request, its sandbox, and what it stands on."""

    request: CopyBackRequest
    sandbox: Sandbox
    attempt: Attempt
    services: Services

    @property
    def limits(self) -> Limits:
        """What one part may cost this worker."""
        return Limits(links=self.services.settings.unsafe_links)

    def take(self) -> Captured:
        """Capture the workspace in the sandbox."""
        request, attempt = self.request, self.attempt
        attempt.at("capture")
        wanted = CaptureRequest(
            path=request.path,
            key=re.sub(r"[^A-Za-z0-9_-]", "-", attempt.task_id)[:128],
            base=request.commit,
            baseline=request.baseline,
            include=request.include,
            exclude=request.exclude,
            max_file=request.max_file or MAX_FILE,
            pause=request.quiesce == "pause",
            when=int(attempt.first_seen),
        )
        return capture(self.sandbox, wanted, attempt.deadline)

    def bring(self, captured: Captured, home: Path) -> Brought:
        """Fetch a capture into ``home`` (private, empty), check it and deliver it."""
        with ThreadPoolExecutor(max_workers=1) as beside:
            try:
                fetched = self._fetch(captured, home)
            finally:
                beside.submit(copy_context().run, discard, self.sandbox, captured, Deadline.after(CLEAN_UP))
            return self._import(fetched, home)

    def _import(self, fetched: Capture, home: Path) -> Brought:
        self.attempt.at("import")
        host = self._host()
        parts = tuple(
            import_part(
                part, bundle, home / f"part-{part.number}.git",
                limits=self.limits, deadline=self.attempt.deadline, host=host,
            )
            for part, bundle in zip(fetched.text.parts, fetched.bundles, strict=True)
        )  # fmt: skip
        diffs = tuple(changes(part, home / f"part-{part.part.number}.patch") for part in parts)
        self.attempt.at("store")
        artifact = self._keep(fetched, parts, diffs, home)
        delivered, moved = (None, None) if host is None else self._deliver(host, parts)
        return Brought(capture=fetched, parts=parts, diffs=diffs, artifact=artifact, delivered=delivered, moved=moved)

    def _fetch(self, captured: Captured, home: Path) -> Capture:
        self.attempt.at("transfer")
        fetched = fetch_capture(
            captured.files, captured.out_dir, home, limits=self.limits, deadline=self.attempt.deadline,
            text=captured.text,
        )  # fmt: skip
        if losses(fetched) and self.request.on_loss == "fail":
            raise refused("import", "incomplete")
        return fetched

    def _host(self) -> HostRepository | None:
        if self.request.deliver is None:
            return None
        places = {name: Path(path) for name, path in self.services.settings.host_repositories.items()}
        return host_repository(places, self.request.deliver.repository)

    def _keep(self, fetched: Capture, parts: Sequence[Imported], diffs: Sequence[Changes], home: Path) -> Artifact:
        request = self.request
        origin = Origin(
            run_id=request.run_id, url=request.origin, depth=request.depth, created=int(self.attempt.first_seen)
        )
        counts = home / "stat.json"
        counts.write_text(json.dumps(stat(parts, diffs), sort_keys=True))
        patches = [diff.patch for diff in diffs if diff.patch is not None]
        files = {path.name: path for path in (*fetched.bundles, *patches, counts)}
        return self.services.artifact_store(request.store).put(files, manifest(origin, fetched, parts, diffs))

    def _deliver(self, host: HostRepository, parts: Sequence[Imported]) -> tuple[Delivered, Moved | None]:
        self.attempt.at("deliver")
        delivered = deliver_refs(host, parts, self.request.run_id)
        branch = self.request.deliver.branch if self.request.deliver else None
        if branch is None:
            return delivered, None
        self.attempt.at("merge")
        return delivered, move_branch(host, parts[0], self.request.run_id, branch)


def losses(fetched: Capture) -> dict[str, int]:
    """What git could not carry or could not read, by kind."""
    return {kind: count for kind, count in fetched.text.omitted.items() if kind not in NO_LOSS and count}
