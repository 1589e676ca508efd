"""Docker's exceptions as facts, and the failures this driver knows by itself."""

from docker.errors import APIError, DockerException, NotFound

from worker.failures.model import Category, Failure, OperationFailed
from worker.sandboxes.docker.engine import NAME, Engine
from worker.sandboxes.facts import plain_facts


def docker_facts(exc: BaseException, *, operation: str, stage: str) -> Failure:
    """The facts of an exception of docker-py, requests, urllib3 or the operating system."""
    status = exc.response.status_code if isinstance(exc, APIError) and exc.response is not None else None
    if isinstance(exc, DockerException) and status is None and exc.__cause__ is not None:
        exc = exc.__cause__  # "Error while fetching server API version" hides what happened
    return plain_facts(exc, operation=operation, stage=stage, provider=NAME, http_status=status)


def failure(
    stage: str, category: Category | None, reason: str | None, exc: BaseException | None = None, *, text: str = ""
) -> OperationFailed:
    """A failure whose reason is known here, if not by its ``text``; the exception, if any, stays in that."""
    return OperationFailed(
        Failure(
            operation="sandbox",
            stage=stage,
            provider=NAME,
            category=category,
            reason=reason,
            http_status=None if exc is None else docker_facts(exc, operation="sandbox", stage=stage).http_status,
            text=text if exc is None else str(exc),
        )
    )


def lost(stage: str, exc: BaseException | None = None) -> OperationFailed:
    """The failure of a sandbox that is gone or dead."""
    return failure(stage, Category.SANDBOX_LOST, "sandbox_lost", exc)


def is_lost(engine: Engine, container: str) -> bool:
    """The container is gone, or is there and does not run."""
    try:
        return not engine.inspect_container(container)["State"]["Running"]
    except NotFound:
        return True


def lost_or_raised(engine: Engine, container: str, stage: str, exc: APIError) -> Exception:
    """What an API error means: ``sandbox_lost`` when the container does not run, else the error itself.

    The engine answers 404 or 409 for a container that is gone or dead, and 404 for its execs.
    """
    if exc.status_code in (404, 409) and is_lost(engine, container):
        return lost(stage, exc)
    return exc
