"""Makes, finds and reads the faults of containers of ours."""

import re
from collections.abc import Mapping
from typing import Any

from docker.errors import NotFound

from worker.failures.model import Failure, InvalidRequest
from worker.sandboxes.base import LABEL_RUN, Spec
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.docker.container import LABEL_CREATED, allowed_image
from worker.sandboxes.docker.creation import Creation
from worker.sandboxes.docker.engine import NAME, Engines
from worker.sandboxes.docker.faults import docker_facts, lost
from worker.sandboxes.docker.sandbox import DockerSandbox
from worker.sandboxes.labels import matches, require_complete, require_ours
from worker.sandboxes.settings import DockerSettings

_ID = re.compile(r"[0-9a-f]{64}")
"""A full id: a shorter one, or a name, could mean another container tomorrow."""


class DockerProvider:
    """Containers of one engine. Only those with our labels exist for it: the engine also runs the database."""

    name = NAME

    def __init__(self, settings: DockerSettings) -> None:
        self._settings = settings
        self._engines = Engines(settings)

    def find(self, labels: Mapping[str, str], *, deadline: Deadline) -> list[DockerSandbox]:
        """See :meth:`worker.sandboxes.base.Provider.find`. Dead ones too: they still have to be released."""
        engine = self._engines.get(deadline)
        wanted = [LABEL_RUN, *(f"{key}={value}" for key, value in labels.items())]
        with engine.within(deadline, "find"):
            listed = engine.containers(all=True, filters={"label": wanted})
        listed.sort(key=lambda item: (item["Created"], item["Labels"].get(LABEL_CREATED, "")))
        return [
            DockerSandbox(self._engines, item["Id"], item["Labels"])
            for item in listed
            if matches(item["Labels"] or {}, labels)
        ]

    def create(self, spec: Spec, labels: Mapping[str, str], *, deadline: Deadline) -> DockerSandbox:
        """See :meth:`worker.sandboxes.base.Provider.create`.

        :raises InvalidRequest: settings do not allow the image (``image_not_allowed``).
        :raises OperationFailed: the engine has no such image (``image_missing``).
        """
        require_complete(labels)
        allowed_image(spec, self._settings)
        engine = self._engines.get(deadline)
        with engine.within(deadline, "create"):
            container = Creation(engine, self._settings, spec, labels, deadline).run()
            found = engine.inspect_container(container)["Config"]["Labels"]
        return self._prepared(container, found, deadline)

    def connect(self, sandbox_id: str, labels: Mapping[str, str], *, deadline: Deadline) -> DockerSandbox:
        """See :meth:`worker.sandboxes.base.Provider.connect`."""
        about = self._about(sandbox_id, labels, deadline, "connect")
        if about is None or not about["State"]["Running"]:
            raise lost("connect")
        return self._prepared(sandbox_id, about["Config"]["Labels"], deadline)

    def end(self, sandbox_id: str, labels: Mapping[str, str], *, deadline: Deadline) -> bool:
        """See :meth:`worker.sandboxes.base.Provider.end`."""
        about = self._about(sandbox_id, labels, deadline, "release")
        if about is None:
            return False
        DockerSandbox(self._engines, sandbox_id, about["Config"]["Labels"]).release(deadline=deadline)
        return True

    def facts(self, exc: BaseException, *, operation: str, stage: str) -> Failure:
        """See :meth:`worker.sandboxes.base.Provider.facts`."""
        return docker_facts(exc, operation=operation, stage=stage)

    def _about(
        self, sandbox_id: str, labels: Mapping[str, str], deadline: Deadline, stage: str
    ) -> dict[str, Any] | None:
        """What the engine knows of a container of ours; ``None`` when there is none."""
        if not _ID.fullmatch(sandbox_id):
            raise InvalidRequest("sandbox_id", "malformed")
        engine = self._engines.get(deadline)
        with engine.within(deadline, stage):
            try:
                about: dict[str, Any] = engine.inspect_container(sandbox_id)
            except NotFound:
                return None
        require_ours(about["Config"]["Labels"] or {}, labels)
        return about

    def _prepared(self, container: str, labels: Mapping[str, str], deadline: Deadline) -> DockerSandbox:
        sandbox = DockerSandbox(self._engines, container, labels)
        sandbox.prepare(deadline=deadline)
        return sandbox
