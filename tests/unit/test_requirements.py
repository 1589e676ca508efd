"""A worker runs with what its lock file installs: nothing that only the tests' environment has is needed."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import importlib, re, sys
from importlib.metadata import packages_distributions

locked, owners = set(sys.argv[1:]), packages_distributions()

class Fence:
    def find_spec(self, name, path=None, target=None):
        found = {re.sub("[-_.]+", "-", owner).lower() for owner in owners.get(name.partition(".")[0], ())}
        if found and not found & locked:
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Fence())
from worker.settings import Settings
from worker.app import app
from worker.observability import metrics
app.loader.import_default_modules()
app.backend
for url in ("redis://", "amqp://"):
    app.connection_for_write(url).get_transport_cls()
metrics.prepare(Settings(metrics_port=9100))
metrics.close()
for name in ("worker.cli", "celery.bin.celery", "celery.worker.consumer", "celery.beat", "flower.command"):
    importlib.import_module(name)
"""


def locked(name: str) -> set[str]:
    text = (ROOT / "requirements" / name).read_text()
    return {
        re.sub(r"[-_.]+", "-", found).lower() for found in re.findall(r"^([A-Za-z0-9._-]+)==", text, flags=re.MULTILINE)
    }


def test_a_worker_imports_what_is_locked_for_it_and_no_more():
    names = locked("worker.txt")
    assert {"celery", "kombu", "redis"} <= names
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *names, "sandferry"], capture_output=True, text=True, check=False, cwd=ROOT,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-500:]
