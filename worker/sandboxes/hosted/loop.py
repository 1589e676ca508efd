"""The event loop on which a hosted SDK runs: one thread a process, so that a deadline is ours to keep.

A synchronous SDK call cannot be left: e2b blocks inside Rust, where no Python signal arrives, and daytona sets
``SIGALRM``. On a loop every call can be cancelled, and the thread that waits for it (the task's) hears a soft time
limit, a cancel and its deadline at once.
"""

import asyncio
import itertools
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from worker.sandboxes.deadline import Deadline

T = TypeVar("T")

_numbers = itertools.count(1)

_TICK = 0.05
"""Seconds between two looks at the deadline and the cancel signal."""


class Loop:
    """An event loop, started on first use, anew in a process that was forked since."""

    def __init__(self, name: str) -> None:
        self.name = f"sandferry-{name}-{next(_numbers)}"
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def call(self, start: Callable[[], Coroutine[Any, Any, T]], deadline: Deadline, stage: str) -> T:
        """Run a coroutine to its end and return what it returns, or raise what it raises. See :meth:`finish`."""
        return self.finish(start, deadline, stage).result()

    def finish(self, start: Callable[[], Coroutine[Any, Any, T]], deadline: Deadline, stage: str) -> "Future[T]":
        """Run a coroutine to its end, however that is; whatever ends the wait sooner cancels it.

        What this raises is about the waiting thread, never about the call: a soft time limit cannot be taken for a
        failure of the SDK, and be handled as one.

        :raises OperationFailed: the deadline has come (``deadline``).
        :raises Cancelled: the run was cancelled.
        """
        deadline.check("sandbox", stage)
        future = asyncio.run_coroutine_threadsafe(start(), self._running())
        ended = threading.Event()
        future.add_done_callback(lambda _: ended.set())
        try:
            while not ended.wait(min(_TICK, deadline.remaining())):
                deadline.check("sandbox", stage)
        except BaseException:
            future.cancel()
            raise
        return future

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name=self.name, daemon=True).start()
            return self._loop
