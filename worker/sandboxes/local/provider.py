"""Makes, finds and reads the faults of local sandboxes."""

import re
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

from worker.failures.model import Failure, InvalidRequest
from worker.sandboxes.base import Spec
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.facts import plain_facts
from worker.sandboxes.labels import matches, require_complete, require_ours
from worker.sandboxes.local import meta, tree
from worker.sandboxes.local.sandbox import DIRECTORIES, NAME, LocalSandbox, lost, remains

_ID = re.compile(r"local-[0-9a-f]{32}")


class LocalProvider:
    """Sandboxes under one private directory (0700) of this machine. Limits of a spec are not enforced."""

    name = NAME

    def __init__(self, root: Path) -> None:
        self._root = root

    def find(self, labels: Mapping[str, str], *, deadline: Deadline) -> list[LocalSandbox]:
        """See :meth:`worker.sandboxes.base.Provider.find`."""
        deadline.check("sandbox", "find")
        paths = self._root.iterdir() if self._root.is_dir() else iter(())
        known = [(meta.load(path), path) for path in paths if _ID.fullmatch(path.name)]
        found = [(about, path) for about, path in known if about is not None and matches(about.labels, labels)]
        found.sort(key=lambda item: (item[0].created, item[1].name))
        return [LocalSandbox(path, about) for about, path in found]

    def create(self, spec: Spec, labels: Mapping[str, str], *, deadline: Deadline) -> LocalSandbox:
        """See :meth:`worker.sandboxes.base.Provider.create`."""
        deadline.check("sandbox", "create")
        require_complete(labels)
        if spec.image is not None:
            raise InvalidRequest("sandbox_spec_image", "image_not_allowed")
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with meta.locked(self._root):
            made_already = self.find(labels, deadline=deadline)
            return made_already[0] if made_already else self._make(spec, labels)

    def connect(self, sandbox_id: str, labels: Mapping[str, str], *, deadline: Deadline) -> LocalSandbox:
        """See :meth:`worker.sandboxes.base.Provider.connect`."""
        deadline.check("sandbox", "connect")
        if (sandbox := self._known(sandbox_id, labels)) is None:
            raise lost("connect")
        return sandbox

    def end(self, sandbox_id: str, labels: Mapping[str, str], *, deadline: Deadline) -> bool:
        """See :meth:`worker.sandboxes.base.Provider.end`."""
        deadline.check("sandbox", "release")
        if (sandbox := self._known(sandbox_id, labels)) is None:
            tree.remove(remains(self._root / sandbox_id))
            return False
        sandbox.release(deadline=deadline)
        return True

    def facts(self, exc: BaseException, *, operation: str, stage: str) -> Failure:
        """See :meth:`worker.sandboxes.base.Provider.facts`."""
        return plain_facts(exc, operation=operation, stage=stage, provider=NAME)

    def _known(self, sandbox_id: str, labels: Mapping[str, str]) -> LocalSandbox | None:
        if not _ID.fullmatch(sandbox_id):
            raise InvalidRequest("sandbox_id", "malformed")
        path = self._root / sandbox_id
        if (about := meta.load(path)) is None:
            return None
        require_ours(about.labels, labels)
        return LocalSandbox(path, about)

    def _make(self, spec: Spec, labels: Mapping[str, str]) -> LocalSandbox:
        about = meta.Meta(labels=dict(labels), created=time.time(), env=dict(spec.env))
        sandbox_id = f"local-{secrets.token_hex(16)}"
        making = self._root / f".making-{sandbox_id}"
        making.mkdir(mode=0o700)
        for name in DIRECTORIES:
            (making / name).mkdir(mode=0o700)
        meta.save(making, about)
        path = making.rename(self._root / sandbox_id)
        return LocalSandbox(path, about)
