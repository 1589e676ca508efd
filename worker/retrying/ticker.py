"""A thread that calls functions at a steady pace: signs of life for leases."""

import heapq
import itertools
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)


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
        self._due: list[tuple[float, int, float, Callable[[], None]]] = []
        self._live: set[int] = set()
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    @contextmanager
    def every(self, seconds: float, call: Callable[[], None]) -> Iterator[None]:
        """Call ``call`` every ``seconds`` while the block runs. What it raises is logged by class and dropped."""
        number = next(self._numbers)
        with self._wake:
            self._live.add(number)
            heapq.heappush(self._due, (time.monotonic() + seconds, number, seconds, call))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"sandferry-{self._name}", daemon=True)
                self._thread.start()
            elif self._due[0][1] == number:
                self._wake.notify()
        try:
            yield
        finally:
            with self._wake:
                self._live.discard(number)

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._due or self._due[0][0] > time.monotonic():
                    self._wake.wait(self._due[0][0] - time.monotonic() if self._due else None)
                _, number, seconds, call = heapq.heappop(self._due)
                if number not in self._live:
                    continue
                heapq.heappush(self._due, (time.monotonic() + seconds, number, seconds, call))
            try:
                call()
            except Exception as exc:  # noqa: BLE001 - a lease that could not be renewed is tried again, whatever it was
                log.warning("tick failed", extra={"ticker": self._name, "exception": type(exc).__name__})
