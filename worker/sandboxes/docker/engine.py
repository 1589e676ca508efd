"""The engine's API client: every call bounded by the deadline at hand, one client per process."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests
from docker import APIClient

from worker.failures.model import EndedBy, Failure, OperationFailed
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.facts import qualified_name
from worker.sandboxes.settings import DockerSettings

NAME = "docker"
_SOCKET = "unix:///var/run/docker.sock"
CALL = 30.0
"""Seconds any one answer may take; an engine that is silent for longer is not going to answer."""


class Engine(APIClient):
    """docker-py's client with a deadline per thread and an exec stream that loses nothing."""

    def __init__(self, settings: DockerSettings, deadline: Deadline) -> None:
        self._local = threading.local()
        self._local.deadline = deadline  # connecting asks for the API version, unless it is pinned
        super().__init__(
            base_url=settings.url or os.environ.get("DOCKER_HOST") or _SOCKET,
            version=settings.api_version,
            timeout=int(CALL),
        )
        self._local.deadline = None
        self.trust_env = False  # a proxy of the worker is not the engine's

    @contextmanager
    def within(self, deadline: Deadline, stage: str) -> Iterator[None]:
        """Bound the calls of the block, in this thread.

        :raises OperationFailed: the engine did not answer before the deadline (``deadline``).
        """
        deadline.check("sandbox", stage)
        outer = getattr(self._local, "deadline", None)
        self._local.deadline = deadline
        try:
            yield
        except (requests.Timeout, requests.ConnectionError) as exc:
            if not deadline.remaining():
                raise _late(exc, stage) from None
            raise
        finally:
            self._local.deadline = outer

    def start_stream(self, exec_id: str) -> requests.Response:
        """Start an exec and return its raw output.

        Without an ``Upgrade``: docker-py's own exec loses a first frame that arrives with the header
        (docker-py#3332), and its reads cannot time out.
        """
        api: Any = self  # the stubs leave out what docker-py's own methods are made of
        url = api._url("/exec/{0}/start", exec_id)  # noqa: SLF001 - ours by inheritance
        response: requests.Response = api._post_json(url, data={"Tty": False, "Detach": False}, stream=True)  # noqa: SLF001
        api._raise_for_status(response)  # noqa: SLF001
        return response

    def _set_request_timeout(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        deadline: Deadline | None = getattr(self._local, "deadline", None)
        # urllib3 takes 0 for "no wait at all" and refuses it.
        seconds = CALL if deadline is None else max(0.05, min(CALL, deadline.remaining()))
        kwargs.setdefault("timeout", seconds)
        return kwargs


class Engines:
    """The client of this process: a connection that crossed a ``fork`` would serve two masters."""

    def __init__(self, settings: DockerSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._owner = 0
        self._engine: Engine | None = None

    def get(self, deadline: Deadline) -> Engine:
        """The engine, connected on first use."""
        with self._lock:
            if self._engine is None or self._owner != os.getpid():
                self._engine = Engine(self._settings, deadline)
                self._owner = os.getpid()
            return self._engine


def _late(exc: Exception, stage: str) -> OperationFailed:
    return OperationFailed(
        Failure(
            operation="sandbox",
            stage=stage,
            provider=NAME,
            exception=qualified_name(exc),
            ended_by=EndedBy.DEADLINE,
            reason="deadline",
            text=str(exc),
        )
    )
