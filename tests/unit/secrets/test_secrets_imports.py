"""Worker memory is budgeted: what a process does not use it does not load."""

import json
import subprocess
import sys

import pytest

HEAVY = {"nacl", "httpx", "jwt", "cryptography", "ssl"}


@pytest.mark.parametrize("module", ["sealed", "keyring", "github", "redaction"])
def test_importing_loads_no_library(module):
    code = f"import json, sys, worker.secrets.{module}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert loaded & HEAVY == set()
