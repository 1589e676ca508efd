"""A bound on the time that a computation may take."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TimeoutError inside the block once ``seconds`` are over; a regular expression is interrupted too.

    Only where a signal can do so: in the main thread, which runs the bodies of Celery's prefork pool.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = signal.signal(signal.SIGALRM, _over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)


def _over(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError
