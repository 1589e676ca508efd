"""Worker memory is budgeted: what only a call needs is imported by a call."""

import subprocess
import sys

LATE = ("jsonschema", "referencing", "rfc8785", "fsspec", "nacl", "docker")


def test_the_task_imports_nothing_that_only_a_call_needs():
    code = f"import sys, tasks.dispatch.task; print(*[name for name in {LATE!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
