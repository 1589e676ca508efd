"""Waiting for the record store: while it is away no task can make progress, so a slot loses nothing by it."""

import time
from collections.abc import Callable
from typing import TypeVar

from worker.stores.redis import StoreError, is_outage

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds; a failover or a restart of Redis with its append-only file takes less."""
PAUSE = 0.5


def patient(call: Callable[[], T], *, patience: float = PATIENCE) -> T:
    """Call until it answers; raises the last :data:`StoreError` once ``patience`` seconds are over.

    An error that is no outage is raised at once.
    """
    end = time.monotonic() + patience
    while True:
        try:
            return call()
        except StoreError as exc:
            if not is_outage(exc) or time.monotonic() >= end:
                raise
        time.sleep(PAUSE)
