"""The launcher of hosted sandboxes on a disk that is full: it says so, and an end finds room to be written down."""

import os
import subprocess
from pathlib import Path

import pytest

from worker.sandboxes.hosted import answer, scripts

NONCE = "0123456789abcdef" * 2


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name in ("run", "up"):
        (tmp_path / name).mkdir()
    return tmp_path


def start(directory: Path, command: list[str]) -> answer.Answer:
    argv = ["/bin/sh", "-c", f'eval "${scripts.VARIABLE}"', "sandferry"]
    argv += ["start", str(directory), NONCE, "20", "10", "100", "1000", "/", "-"]
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C", scripts.VARIABLE: scripts.LAUNCHER}
    done = subprocess.run(
        argv,
        env=env | {"SANDFERRY_JOB": scripts.job(command, {})},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    found = answer.parse(done.stdout, NONCE)
    assert found is not None, done
    return found


def test_without_room_nothing_begins_and_the_reason_is_told(directory: Path, tmp_path: Path):
    (directory / "run" / f"{NONCE}.kept").symlink_to("/dev/full")
    refused = start(directory, ["touch", str(tmp_path / "ran")])
    assert (refused.how, refused.code) == ("refused", None)
    assert b"No space left on device" in refused.out
    assert not (tmp_path / "ran").exists()
    assert list((directory / "run").iterdir()) == [], "the next one may begin"
    assert start(directory, ["touch", str(tmp_path / "ran")]).code == 0


def test_room_is_kept_while_a_command_runs_and_freed_for_its_end(directory: Path):
    kept = directory / "run" / f"{NONCE}.kept"
    done = start(directory, ["stat", "-c", "%s", str(kept)])
    assert (done.how, done.code, int(done.out)) == ("itself", 0, 16384)
    assert kept.stat().st_size == 0
