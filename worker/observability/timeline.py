"""A run event as one line for a person."""

from worker.stores.events import Event

HIDDEN = frozenset({"task_id", "cause"})
"""A task id is long; a cause stands at the end of the line."""


def line(event: Event, start: float) -> str:
    """Say when (seconds after ``start``, an epoch time), what, its data, and its cause, nothing twice."""
    cause = str(event.data.get("cause") or "")
    told = {*cause.split(), f"code={cause.partition(':')[0]}"}
    data = [f"{key}={value}" for key, value in event.data.items() if key not in HIDDEN]
    words = " ".join([*(word for word in data if word not in told), cause])
    return f"{event.time - start:+9.3f}s  {event.name:<24} {words}".rstrip()
