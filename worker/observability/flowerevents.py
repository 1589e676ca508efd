"""What Flower may know of a task event. Pure."""

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "<hidden>"

_FAILED = re.compile(r"TaskFailed\('([^']*)'(?:, attempt=(\d+), attempts=(\d+), next_eta=([\d.]+))?\)")
"""How :class:`worker.retrying.failed.TaskFailed` writes itself."""


def shown(event: Mapping[str, Any]) -> dict[str, Any]:
    """Copy an event without arguments, whoever sent it, and with a failure as a person reads it.

    Both pages and REST API are made of events; what is taken out here is in neither.
    """
    seen = dict(event)
    if not str(seen.get("type", "")).startswith("task-"):
        return seen
    for key in ("args", "kwargs"):
        if key in seen:
            seen[key] = HIDDEN
    found = _FAILED.fullmatch(str(seen.get("exception", "")))
    if found is not None:
        seen["exception"] = found[1] + _next(found, seen.get("timestamp"))
    elif "exception" in seen:
        # Not a failure of ours: its class says enough, its text may say too much.
        seen["exception"] = str(seen["exception"]).partition("(")[0]
    # Ours hold no more than lines of Celery; others may hold the values of a message.
    seen.pop("traceback", None)
    return seen


def _next(found: re.Match[str], now: Any) -> str:
    """Say when the next attempt comes, after the event of a retry."""
    if found[4] is None or not isinstance(now, int | float):
        return ""
    return f" (attempt {found[2]} of {found[3]}, next in {max(0, round(float(found[4]) - now))} s)"
