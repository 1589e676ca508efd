"""Our hands in a sandbox: calls that are bounded, asked again when that is safe, and that know a lost sandbox."""

import errno
import os
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import suppress
from typing import IO, Any, TypeVar

from worker.failures.classify import classify
from worker.failures.model import Category, OperationFailed
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.hosted import scripts
from worker.sandboxes.hosted.cloud import Cloud, State
from worker.sandboxes.hosted.faults import failure, lost
from worker.sandboxes.hosted.loop import Loop

T = TypeVar("T")

_PAUSES = (0.2, 1.0)
"""Seconds before a call is asked again. Longer waits are the job's: they do not hold a worker's slot."""
_AGAIN = (Category.TRANSIENT_NETWORK, Category.TRANSIENT_SERVER, Category.TIMEOUT_AMBIGUOUS, Category.UNKNOWN)
_LOOK = 5.0
"""Seconds for the question whether a sandbox still exists."""
_SLACK = 10.0
"""Seconds the provider may let a command live beyond our own deadline, so that we are the ones who end it."""
_FILE_ERRORS = (errno.ENOENT, errno.EACCES, errno.EISDIR)


class Hands:
    """One sandbox of one cloud."""

    def __init__(self, cloud: Cloud, loop: Loop, sandbox_id: str) -> None:
        self.cloud = cloud
        self.id = sandbox_id
        self._loop = loop

    def script(
        self,
        text: str,
        *args: str,
        env: Mapping[str, str] | None = None,
        deadline: Deadline,
        stage: str,
    ) -> tuple[int, str]:
        """Run a script that may be run twice; its exit code and its output."""
        command, variables = scripts.invocation(*args), {scripts.VARIABLE: text, "LC_ALL": "C", **(env or {})}

        def start() -> Coroutine[Any, Any, tuple[int, str]]:
            return self.cloud.execute(self.id, command, variables, deadline.remaining() + _SLACK)

        return self.repeated(start, deadline, stage)

    def upload(self, path: str, file: IO[bytes], *, deadline: Deadline, stage: str) -> None:
        """Write a file of ours that nobody reads yet."""

        def start() -> Coroutine[Any, Any, None]:
            file.seek(0)
            return self.cloud.upload(self.id, path, file)

        self.repeated(start, deadline, stage)

    def download(
        self, path: str, *, deadline: Deadline, stage: str, explain: Callable[[], bool] = lambda: False
    ) -> Generator[bytes]:
        """Stream a file. ``explain`` is asked when that fails: it raises what it knows, or says that all is well."""
        chunks = self.cloud.download(self.id, path)

        async def following() -> bytes | None:
            return await anext(chunks, None)

        try:
            while (future := self._loop.finish(following, deadline, stage)).exception() is None:
                if (chunk := future.result()) is None:
                    return
                yield chunk
            self.raise_if_lost(deadline, stage)
            if not explain():
                future.result()
        finally:
            if (close := getattr(chunks, "aclose", None)) is not None:
                with suppress(Exception):  # it is over; what the connection still has to say does not matter
                    self._loop.call(close, Deadline.after(_LOOK), stage)

    def repeated(
        self, start: Callable[[], Coroutine[Any, Any, T]], deadline: Deadline, stage: str, *, needs_it: bool = True
    ) -> T:
        """A call that may be made twice, made again when its answer was lost or the server stumbled.

        Whatever went wrong: a sandbox that is gone is ``sandbox_lost``. ``needs_it=False``: that explains nothing.
        """
        for pause in (*_PAUSES, None):
            future = self._loop.finish(start, deadline, stage)
            if (exc := future.exception()) is None:
                break
            if needs_it:
                self.raise_if_lost(deadline, stage)
            if pause is None or isinstance(exc, OperationFailed) or not self._is_passing(exc, stage):
                break
            deadline.wait(pause)
        return future.result()

    def once(self, start: Callable[[], Coroutine[Any, Any, T]], deadline: Deadline, stage: str) -> T:
        """A call that is made once."""
        future = self._loop.finish(start, deadline, stage)
        if future.exception() is not None:
            self.raise_if_lost(deadline, stage)
        return future.result()

    def _is_passing(self, exc: BaseException, stage: str) -> bool:
        return classify(self.cloud.facts(exc, operation="sandbox", stage=stage)).category in _AGAIN

    def raise_if_lost(self, deadline: Deadline, stage: str) -> None:
        """Ask the provider whether the sandbox is there; one that is not is ``sandbox_lost``."""
        if self._is_lost(deadline):
            raise lost(self.cloud.name, stage)

    def _is_lost(self, deadline: Deadline) -> bool:
        # Statuses and messages mislead (400, 404, 500, 502 have all been seen); the provider's list does not.
        future = self._loop.finish(lambda: self.cloud.about(self.id), deadline.capped(_LOOK), "find")
        if future.exception() is not None:
            return False
        return (about := future.result()) is None or about.state is State.DEAD

    def raise_errno(self, code: int, text: str, stage: str) -> None:
        """Raise what a script's exit code stands for: an ``OSError``, or a failure with what it said."""
        if code in _FILE_ERRORS:
            raise OSError(code, os.strerror(code))
        if code:
            raise failure(self.cloud.name, stage, None, None, text)
