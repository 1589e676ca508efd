"""A thread that calls functions at a steady pace: signs of life for leases."""

import itertools
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Pace:
    due: float
    seconds: float
    call: Callable[[], object]


class Ticker:
    """Calls each registered function every so many seconds, on one daemon thread made on first use.

    A pool child is a fork: threads do not survive it, so a ticker starts anew in a child.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._wake = threading.Condition()
        self._paces: dict[int, _Pace] = {}
        self._numbers = itertools.count()
        self._asleep_until = math.inf
        self._thread: threading.Thread | None = None

    @contextmanager
    def every(self, seconds: float, call: Callable[[], object]) -> Iterator[None]:
        """Call ``call`` every ``seconds`` while the block runs. What it raises is logged by class and dropped.

        A call may still be running when the block is left.
        """
        number = next(self._numbers)
        pace = _Pace(time.monotonic() + seconds, seconds, call)
        with self._wake:
            self._paces[number] = pace
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"sandferry-{self._name}", daemon=True)
                self._thread.start()
            elif pace.due < self._asleep_until:
                self._wake.notify()
        try:
            yield
        finally:
            # The thread is not woken for this: short bodies would pay for it, and it finds out by itself.
            with self._wake:
                del self._paces[number]

    def _run(self) -> None:
        while True:
            self._tick()

    def _tick(self) -> None:
        call = self._next()
        try:
            call()
        except Exception as exc:  # noqa: BLE001 - a lease that could not be renewed is tried again, whatever it was
            log.warning("tick failed", extra={"ticker": self._name, "exception": type(exc).__name__})

    def _next(self) -> Callable[[], object]:
        """Sleep until the next call is due; nothing of a pace is held meanwhile."""
        with self._wake:
            while (due := min((pace.due for pace in self._paces.values()), default=math.inf)) > time.monotonic():
                self._asleep_until = due
                self._wake.wait(None if due == math.inf else due - time.monotonic())
            pace = min(self._paces.values(), key=lambda pace: pace.due)
            pace.due = time.monotonic() + pace.seconds
            return pace.call
