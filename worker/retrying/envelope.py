"""A message as JSON, so that it can be published again when its worker is gone."""

from typing import Any

from celery import Celery
from celery.app.task import Context
from kombu.utils.json import dumps

from worker.retrying.stamp import Stamp


def of(task_name: str, request: Context) -> str:
    """Write down the message of ``request``: a JSON object ``{task, args, kwargs, options}``."""
    options = {key: value for key, value in request.as_execution_options().items() if value not in (None, [], {})}
    info = request.delivery_info or {}
    if info.get("priority") is not None:
        options["priority"] = info["priority"]
    options["queue"] = info.get("routing_key")
    return str(dumps({"task": task_name, "args": request.args, "kwargs": request.kwargs, "options": options}))


def publish(app: Celery, envelope: dict[str, Any], stamp: Stamp) -> None:
    """Send the message again, as attempt ``stamp.attempt``, under the same task id."""
    options = dict(envelope["options"])
    headers = stamp.headers(options.pop("headers", None))
    options |= {"headers": headers, "retries": stamp.attempt - 1}
    app.send_task(envelope["task"], args=envelope["args"], kwargs=envelope["kwargs"], **options)
