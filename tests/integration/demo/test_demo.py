"""The demo as a newcomer runs it."""

import os
import subprocess
import sys
from pathlib import Path

from tests.doubles.repositories import git

ENV = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path.cwd()), "LC_ALL": "C.UTF-8"}


def demo(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "worker.cli", "demo", *arguments], env=ENV | {"HOME": str(home)}, cwd=home,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_it_shows_two_rejections_one_mint_and_the_clone(tmp_path: Path):
    done = demo(tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    timeline = done.stdout.partition("Timeline")[2].partition("Result")[0].splitlines()
    retries = [line for line in timeline if "sandbox.git.retrying" in line]
    assert [" reason=token_replication delay_ms=3000" in retries[0], len(retries)] == [True, 2]
    assert " reason=token_replication delay_ms=9000" in retries[1]
    assert any("sandbox.git.completed" in line for line in timeline)
    assert "ok  one mint, one token for all three attempts" in done.stdout
    assert "FAILED" not in done.stdout


def test_it_clones_the_users_own_repository(tmp_path: Path):
    git("init", "-q", "-b", "main", str(tmp_path / "mine"))
    (tmp_path / "mine/own.txt").write_text("own\n")
    git("add", ".", cwd=tmp_path / "mine")
    git("commit", "-qm", "own", cwd=tmp_path / "mine")
    commit = git("rev-parse", "HEAD", cwd=tmp_path / "mine").stdout.strip()

    done = demo(tmp_path, "--repo", "mine")

    assert done.returncode == 0, done.stdout + done.stderr
    assert f'"commit": "{commit}"' in done.stdout


def test_it_says_when_the_path_is_no_repository(tmp_path: Path):
    done = demo(tmp_path, "--repo", str(tmp_path))

    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1] == f"sandferry: not a git repository: {tmp_path}"
    assert "Traceback" not in done.stderr
