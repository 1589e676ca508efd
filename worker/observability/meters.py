"""The metrics themselves. Import it only where metrics are on: see :mod:`worker.observability.metrics`."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, start_http_server, values
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

_WAIT = (0.01, 0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)
"""Seconds; up to the default of ``queue_wait``."""
_STEP = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)
"""Seconds; up to the longest default deadline."""


class Meters:
    """One object a process tree; label values are members of closed lists."""

    def __init__(self) -> None:
        # Chosen when prometheus_client was imported, which Flower's plugin for the `celery` command does too soon.
        values.ValueClass = values.MultiProcessValue()
        labels = ("task", "provider", "outcome", "category")
        self.attempts = Counter("sandferry_attempts", "Attempts by what became of them.", labels, registry=None)
        self.tasks = Counter("sandferry_tasks", "Tasks by their final outcome.", labels, registry=None)
        self.countdown = Counter(
            "sandferry_retry_countdown_seconds", "Seconds of backoff scheduled.", ("task", "category"), registry=None
        )
        self.queue_wait = Histogram(
            "sandferry_queue_wait_seconds", "Seconds that messages waited for a worker; retries, past their due time.",
            ("task",), buckets=_WAIT, registry=None,
        )  # fmt: skip
        self.steps = Histogram(
            "sandferry_step_duration_seconds", "Seconds that steps of jobs took.",
            ("operation", "step"), buckets=_STEP, registry=None,
        )  # fmt: skip
        self.unknown = Counter(
            "sandferry_unknown_outcomes", "Tasks that ended without anybody knowing their effect.", ("task",),
            registry=None,
        )  # fmt: skip
        self.swept = Counter(
            "sandferry_swept_records", "Records that a sweep dealt with.", ("kind", "outcome"), registry=None
        )


class Now(Collector):
    """What is asked for at the moment of a scrape."""

    def __init__(self, sandboxes: Callable[[], Mapping[str, int]], silence: Callable[[], float]) -> None:
        self._sandboxes = sandboxes
        self._silence = silence

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges; one whose source is away is left out."""
        since = "Seconds since this worker last took a message, or since it started."
        yield GaugeMetricFamily("sandferry_since_last_message_seconds", since, value=self._silence())
        try:
            counts = self._sandboxes()
        except Exception:  # noqa: BLE001 - whatever the store raises, the other metrics are served
            return
        opened = GaugeMetricFamily("sandferry_sandboxes_open", "Sandboxes of this installation.", labels=["provider"])
        for provider, count in counts.items():
            opened.add_metric([provider], count)
        yield opened


def listen(
    port: int, address: str, *, sandboxes: Callable[[], Mapping[str, int]], silence: Callable[[], float]
) -> None:
    """Serve on a thread of this process; raises OSError if the port is taken."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    registry.register(Now(sandboxes, silence))
    start_http_server(port, address, registry)
