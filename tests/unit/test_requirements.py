"""What a worker imports is what its lock file installs: an environment without the tests' packages runs it."""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import importlib, json, sys
from importlib.metadata import packages_distributions
from worker.settings import Settings
from worker.app import app
from worker.observability import metrics
app.loader.import_default_modules()
app.backend, app.connection_for_write().transport_cls
for url in ("redis://", "amqp://"):
    app.connection_for_write(url).get_transport_cls()
metrics.prepare(Settings(metrics_port=9100))
metrics.close()
for name in ("worker.cli", "celery.bin.celery", "celery.bin.worker", "celery.worker.consumer", "celery.beat"):
    importlib.import_module(name)
owners = packages_distributions()
top = {name.partition(".")[0] for name in sys.modules}
print(json.dumps(sorted({owner for name in top for owner in owners.get(name, ())})))
"""


def locked(name: str) -> set[str]:
    text = (ROOT / "requirements" / name).read_text()
    return {normal(found) for found in re.findall(r"^([A-Za-z0-9._-]+)==", text, flags=re.MULTILINE)}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_a_worker_imports_nothing_that_is_not_locked_for_it():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, cwd=ROOT, timeout=60
    )
    imported = {normal(name) for name in json.loads(done.stdout)} - {"sandferry"}
    assert {"celery", "kombu", "redis"} <= imported
    assert imported - locked("worker.txt") == set()
