"""A worker with settings that lose tasks does not start; one with a forgetful store says so."""

import subprocess
import sys
from pathlib import Path

from tests.rig.retrying_rig import Rig
from tests.rig.waiting import until
from tests.rig.worker_process import ROOT


def test_a_worker_refuses(tmp_path: Path, valkey_url: str):
    script = "from worker.app import app; app.conf.task_acks_late = False; app.worker_main(['worker', '-c', '1'])"
    env = Rig(valkey_url, tmp_path).env(PYTHONPATH=str(ROOT))
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "sandferry: task_acks_late: and task_reject_on_worker_lost must be on" in done.stderr
    assert " ready" not in done.stderr


def test_a_forgetful_store_is_said(tmp_path: Path, valkey_url: str):
    rig = Rig(valkey_url, tmp_path)
    worker = rig.worker()
    until(lambda: '"setting": "appendonly"' in worker.text(), what="a warning")
    rig.close()


def test_a_worker_that_cannot_start_ends_with_a_fault(tmp_path: Path, valkey_url: str):
    env = Rig(valkey_url, tmp_path).env(PYTHONPATH=str(ROOT), SANDFERRY_SENTRY_DSN_FILE=str(tmp_path / "none"))
    done = subprocess.run(
        [sys.executable, "-m", "worker.cli", "worker", "-c", "1"], env=env, cwd=tmp_path, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "sandferry: SANDFERRY_SENTRY_DSN_FILE: is no file with a DSN" in done.stderr
    assert "Traceback" not in done.stderr


def test_beat_that_cannot_start_ends_with_a_fault(tmp_path: Path, valkey_url: str):
    env = Rig(valkey_url, tmp_path).env(PYTHONPATH=str(ROOT), SANDFERRY_SENTRY_DSN_FILE=str(tmp_path / "none"))
    done = subprocess.run(
        [sys.executable, "-m", "worker.cli", "beat"], env=env, cwd=tmp_path, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "sandferry: SANDFERRY_SENTRY_DSN_FILE: is no file with a DSN" in done.stderr


def test_a_misspelt_variable_is_said(tmp_path: Path, valkey_url: str):
    rig = Rig(valkey_url, tmp_path)
    worker = rig.worker(env={"SANDFERRY_TOOL_ALLOWED": "sha256:x"})
    until(lambda: "is SANDFERRY_TOOLS_ALLOWED meant?" in worker.text(), what="a warning")
    rig.close()


def test_a_fault_in_setting_up_ends_the_worker(tmp_path: Path, valkey_url: str):
    script = (
        "from worker.observability import sentry\n"
        "def broken(_): raise RuntimeError('cnry-7Hq2')\n"
        "sentry.init = broken\n"
        "from worker.cli import app; app(['worker', '-c', '1'])"
    )
    env = Rig(valkey_url, tmp_path).env(PYTHONPATH=str(ROOT))
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "sandferry: the worker cannot be set up (RuntimeError)" in done.stderr
    assert "cnry-7Hq2" not in done.stdout + done.stderr
