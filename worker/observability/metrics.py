"""Metrics for Prometheus: counted in every process of a worker, served by its main process.

Off unless ``metrics_port`` is set: then nothing here is imported, counted or written. The pool's children and the main
process write to files of their own in one directory, which the main process adds up when it is asked
(prometheus_client's multiprocess mode). Names and units follow prometheus.io/docs/practices/naming.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from worker.observability.logs import logger
from worker.settings import Settings

if TYPE_CHECKING:
    from worker.observability.meters import Meters

log = logger(__name__)

UNKNOWN_CODES = frozenset({"managed_tool_outcome_unknown", "hard_timeout"})
"""Codes of failures of which nobody knows whether they had their effect."""

_meters: "Meters | None" = None
_directory: str | None = None
_last_message = time.monotonic()


def prepare(config: Settings) -> None:
    """Begin to count; must happen before the pool forks."""
    global _meters, _directory  # noqa: PLW0603 - a process counts in one place
    if config.metrics_port is None:
        return
    _directory = tempfile.mkdtemp(prefix="sandferry-metrics-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = _directory
    from worker.observability.meters import Meters  # noqa: PLC0415 - needs the directory

    _meters = Meters()


def serve(config: Settings, *, sandboxes: Callable[[], Mapping[str, int]]) -> None:
    """Answer scrapes on the worker's port; ``sandboxes`` counts the open ones by provider, or raises."""
    if config.metrics_port is None or _meters is None:
        return
    from worker.observability.meters import listen  # noqa: PLC0415 - see prepare

    try:
        listen(config.metrics_port, config.metrics_address, sandboxes=sandboxes, silence=silence)
    except OSError as exc:
        log.error("metrics not served", port=config.metrics_port, exception=type(exc).__name__)  # noqa: TRY400 - a line
        return
    log.info("metrics served", port=config.metrics_port)


def close() -> None:
    """Remove what was counted; the worker ends."""
    global _directory  # noqa: PLW0603 - see prepare
    if _directory is not None:
        shutil.rmtree(_directory, ignore_errors=True)
        _directory = None


def consumed() -> None:
    """A message came to this worker's main process."""
    global _last_message  # noqa: PLW0603 - read by the main process alone
    _last_message = time.monotonic()


def silence() -> float:
    """Seconds since the last message, or since the worker started."""
    return time.monotonic() - _last_message


def began(task: str, waited: float) -> None:
    """A body starts; ``waited`` seconds in the queue, past its due time for a retry."""
    if _meters is not None:
        _meters.queue_wait.labels(task).observe(waited)


def ended(
    task: str, provider: str, outcome: str, category: str = "none", *, countdown: float | None = None, code: str = ""
) -> None:
    """An attempt came to an outcome: succeeded, retried, failed, cancelled, or lost with its process."""
    if _meters is None:
        return
    _meters.attempts.labels(task, provider, outcome, category).inc()
    if countdown is not None:
        _meters.countdown.labels(task, category).inc(countdown)
    elif outcome != "lost":
        _meters.tasks.labels(task, provider, outcome, category).inc()
    if code in UNKNOWN_CODES:
        _meters.unknown.labels(task).inc()


def step(operation: str, name: str, seconds: float) -> None:
    """A step of a job took ``seconds``."""
    if _meters is not None:
        _meters.steps.labels(operation, name).observe(seconds)


def swept(kind: str, counts: Mapping[str, int]) -> None:
    """A sweep brought so many records of a kind (task, operation, sandbox) to an outcome each."""
    if _meters is not None:
        for outcome, count in counts.items():
            _meters.swept.labels(kind, outcome).inc(count)
