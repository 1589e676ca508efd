"""Run by a Python that cannot import `worker`: reads one result as a web backend would, prints what it saw."""

import importlib.util
import json
import sys

from celery import Celery
from celery.result import AsyncResult

url, task_id = sys.argv[1:]
app = Celery("backend", broker=url, backend=url)
result = AsyncResult(task_id, app=app)
error = result.result
print(
    json.dumps(
        {
            "ours": importlib.util.find_spec("worker") is not None,
            "state": result.state,
            "class": type(error).__name__,
            "module": type(error).__module__,
            "payload": error.args[0],
            "traceback": result.traceback,
        }
    )
)
