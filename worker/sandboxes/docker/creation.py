"""Create, never blindly: one name per create, and a look before every repetition."""

from collections.abc import Mapping
from typing import Any

import requests
from docker.errors import APIError, ImageNotFound, NotFound

from worker.failures.model import Category
from worker.sandboxes.base import Spec
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.docker.container import container_config, container_name, host_config
from worker.sandboxes.docker.engine import Engine
from worker.sandboxes.docker.faults import failure
from worker.sandboxes.docker.removal import remove
from worker.sandboxes.labels import matches
from worker.sandboxes.settings import DockerSettings

_LOOK_AGAIN = 3.0
"""Seconds in which a create whose answer was lost may still appear; the engine makes one in well under one."""
_USABLE = ("created", "running")
"""States in which a container can be adopted."""


class Creation:
    """One create: the same labels always end at the same single container."""

    def __init__(
        self, engine: Engine, settings: DockerSettings, spec: Spec, labels: Mapping[str, str], deadline: Deadline
    ) -> None:
        self._engine = engine
        self._labels = labels
        self._deadline = deadline
        self._name = container_name(labels)
        self._config = {**container_config(spec, labels, settings), "HostConfig": host_config(spec, settings)}

    def run(self) -> str:
        """The id of the started container.

        :raises OperationFailed: the image is absent (``image_missing``), or another's container has the name.
        """
        container = self._adopted() or self._made()
        try:
            self._start(container)
        except APIError:
            remove(self._engine, container, self._deadline)  # it never ran: nothing of value in it
            raise
        return container

    def _start(self, container: str) -> None:
        try:
            self._engine.start(container)
        except (requests.ConnectionError, requests.Timeout):
            self._deadline.check("sandbox", "create")
            self._engine.start(container)  # starting one that runs is no error to the engine

    def _made(self) -> str:
        # Sent or not, made or not: nobody knows. Look, wait, look again; then one replacement.
        try:
            return self._create()
        except (requests.ConnectionError, requests.Timeout):
            if found := self._found():
                return found
        self._deadline.check("sandbox", "create")
        try:
            return self._create()
        except (requests.ConnectionError, requests.Timeout):
            if found := self._found():
                return found
            raise

    def _create(self) -> str:
        try:
            made: dict[str, Any] = self._engine.create_container_from_config(self._config, self._name)
        except ImageNotFound as exc:
            raise failure("create", Category.NOT_FOUND, "image_missing", exc) from exc
        except APIError as exc:
            # The name is taken: our own lost create came late, or another worker makes the same sandbox.
            if exc.status_code == 409 and (found := self._found()):
                return found
            raise
        return str(made["Id"])

    def _found(self) -> str | None:
        found: list[str] = []

        def look() -> bool:
            if (container := self._adopted()) is not None:
                found.append(container)
            return bool(found)

        self._deadline.wait(_LOOK_AGAIN, look)
        return found[0] if found else None

    def _adopted(self) -> str | None:
        """The container of our name, if its labels are ours and it is alive; a dead one is removed."""
        try:
            about = self._engine.inspect_container(self._name)
        except NotFound:
            return None
        except (requests.ConnectionError, requests.Timeout):
            return None  # looked at again
        if not matches(about["Config"]["Labels"] or {}, self._labels):
            raise failure("create", Category.INVALID_REQUEST, "name_taken")
        if about["State"]["Status"] not in _USABLE:
            remove(self._engine, about["Id"], self._deadline)
            return None
        return str(about["Id"])
