"""Wait for a condition with a deadline; never sleep and hope."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T], *, seconds: float = 30.0, what: str = "condition", pause: float = 0.05) -> T:
    """The first truthy answer of ``condition``."""
    end = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() >= end:
            raise AssertionError(f"{what} did not hold within {seconds} s; last answer: {answer!r}")
        time.sleep(pause)


def promptly(seconds: float) -> float:
    """How long something prompt may take now: ``seconds`` on an idle machine, more the more loaded it is.

    The tests that use it tell "at once" from "never" (what they wait for would take half a minute or for ever).
    """
    return seconds * max(2.0, os.getloadavg()[0] / (os.cpu_count() or 1))
