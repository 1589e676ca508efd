"""What a delivery says about itself before its request is trusted. Pure."""

import re
from typing import Any

from worker.failures.model import InvalidRequest

RUN_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}")
"""Form of a run id: it becomes part of keys, labels and file names."""
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


def run_id_of(kwargs: dict[str, Any]) -> str:
    """Read the run id of a message whose request was not validated yet."""
    request = kwargs.get("request")
    run_id = request.get("run_id") if isinstance(request, dict) else None
    return run_id if isinstance(run_id, str) and RUN_ID.fullmatch(run_id) else NO_RUN
