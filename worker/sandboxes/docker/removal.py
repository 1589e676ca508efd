"""Removing containers."""

from docker.errors import APIError, NotFound

from worker.sandboxes.deadline import Deadline
from worker.sandboxes.docker.engine import Engine

_REMOVAL = 10.0
"""Seconds to wait for a removal that someone else began."""


def remove(engine: Engine, container: str, deadline: Deadline) -> None:
    """Remove a container, running or not. Gone already is success; so is a removal by someone else."""
    try:
        engine.remove_container(container, force=True, v=True)
    except NotFound:
        return
    except APIError as exc:
        if exc.status_code != 409 or not deadline.wait(_REMOVAL, lambda: is_absent(engine, container)):
            raise


def is_absent(engine: Engine, container: str) -> bool:
    """The engine knows no such container."""
    try:
        engine.inspect_container(container)
    except NotFound:
        return True
    return False
