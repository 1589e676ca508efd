"""The peer of the memory benchmark: a Celery worker as many projects have it, with pydantic and sentry-sdk."""

import os
import sys
from typing import Any

import psutil
import pydantic
import sentry_sdk
from celery import Celery
from kombu import Queue

app = Celery("bare", broker=os.environ["SANDFERRY_BROKER_URL"], backend=os.environ["SANDFERRY_BROKER_URL"])
app.conf.update(task_queues=[Queue("bench")], broker_connection_retry_on_startup=True)
sentry_sdk.init(dsn=None)


class Request(pydantic.BaseModel):
    schema_: int = pydantic.Field(alias="schema")


@app.task(name="bench.ours")
def job(request: dict[str, Any]) -> dict[str, Any]:
    Request.model_validate(request)
    return {}


@app.task(name="bench.look")
def look(**_: Any) -> dict[str, Any]:
    return {"uss": psutil.Process().memory_full_info().uss, "modules": sorted(sys.modules)}
