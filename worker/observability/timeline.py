"""A run event as one line for a person."""

from worker.stores.events import Event

HIDDEN = frozenset({"task_id", "cause"})
"""Long, and seen elsewhere."""


def line(event: Event, start: float) -> str:
    """Say when (seconds after ``start``, an epoch time), what, and its data."""
    data = " ".join(f"{key}={value}" for key, value in event.data.items() if key not in HIDDEN)
    return f"{event.time - start:+9.3f}s  {event.name:<24} {data}"
