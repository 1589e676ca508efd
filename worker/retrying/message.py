"""What a delivery says about itself before its request is trusted. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from worker.failures.model import InvalidRequest

RUN_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}")
"""Form of a run id: it becomes part of keys, labels and file names."""
MOST_ID = 255
"""Characters of a task id; Celery's own are 36."""
DEEPEST = 100
"""Lists and objects that may stand in each other, in a message: a worker's main process pickles it for its children,
and Python's pickle ends a process that has no more stack from some 300 on."""
NO_RUN = "-"
"""Stands for the run of a message that names none, or none of our form."""


def owner(hostname: str | None, pid: int) -> str:
    """Name the process that runs a body: the worker's node name and the pool child's pid."""
    return f"{hostname}/{pid}"


def request_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Take the one keyword argument that every task has."""
    if args:
        raise InvalidRequest("request", "positional_argument")
    if "request" not in kwargs:
        raise InvalidRequest("request", "missing")
    if len(kwargs) > 1:
        raise InvalidRequest("request", "unknown_field")
    return kwargs["request"]


def too_deep(value: Any) -> bool:
    """Whether lists and objects of a decoded message stand in each other more than :data:`DEEPEST` times."""
    layer = [value]
    for _ in range(DEEPEST):
        layer = [inner for outer in layer for inner in _inside(outer) if isinstance(inner, dict | list | tuple)]
    return bool(layer)


def _inside(outer: Any) -> Any:
    match outer:
        case dict():
            return outer.values()
        case list() | tuple():
            return outer
    return ()


def malformed(headers: Any, payload: Any) -> str | None:
    """What of a message is not of Celery's protocol 2, or ``None``: Celery itself trusts all of it.

    ``headers`` are the task's, ``payload`` is the decoded body, ``[args, kwargs, embed]``.
    """
    if not isinstance(headers, Mapping):
        return "headers"
    for name, fits in _HEADERS.items():
        if not fits(headers.get(name)):
            return name
    if too_deep(headers):
        return "headers"
    match payload:
        case [list(), dict(), dict() | None]:
            return None
    return "body"


def _is_limits(value: Any) -> bool:
    return value is None or (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(limit is None or type(limit) in (int, float) for limit in value)
    )


_HEADERS = {
    "id": lambda value: isinstance(value, str) and 0 < len(value) <= MOST_ID,
    "task": lambda value: isinstance(value, str),
    "retries": lambda value: value is None or type(value) is int,
    "timelimit": _is_limits,
    "stamps": lambda value: value is None or isinstance(value, Mapping),
    "stamped_headers": lambda value: value is None or isinstance(value, list | tuple),
    **dict.fromkeys(
        ("eta", "expires", "shadow", "root_id", "parent_id", "group", "argsrepr", "kwargsrepr", "origin"),
        lambda value: value is None or isinstance(value, str),
    ),
}
"""The headers that a worker's main process acts on; of all others nothing is expected."""


def run_id_of(kwargs: dict[str, Any]) -> str:
    """Read the run id of a message whose request was not validated yet."""
    request = kwargs.get("request")
    run_id = request.get("run_id") if isinstance(request, dict) else None
    return run_id if isinstance(run_id, str) and RUN_ID.fullmatch(run_id) else NO_RUN
