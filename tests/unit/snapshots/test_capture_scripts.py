"""The scripts are POSIX shell: every shell reads them, shellcheck has nothing to say."""

import os
import shutil
import subprocess

import pytest

from worker.snapshots.scripts import BASELINE, CAPTURE, SWEEP, script

SCRIPTS = {"capture": script(*CAPTURE), "sweep": script(*SWEEP), "baseline": script(*BASELINE)}
ARGUMENT = 128 * 1024
"""Bytes Linux takes as one argument (MAX_ARG_STRLEN)."""


def tool(name):
    if shutil.which(name) is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{name} is missing")
        pytest.skip(f"{name} is missing")
    return name


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("shell", ["dash", "bash --posix", "busybox sh"])
def test_every_shell_reads_it(name, shell):
    argv = [tool(shell.split()[0]), *shell.split()[1:], "-n"]
    done = subprocess.run(argv, input=SCRIPTS[name].encode(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("name", SCRIPTS)
def test_shellcheck_is_content(name):
    argv = [tool("shellcheck"), "--shell=sh", "--exclude=SC2016,SC2094,SC2034,SC2154", "-"]
    done = subprocess.run(argv, input=SCRIPTS[name], capture_output=True, text=True, check=False)
    assert done.stdout == ""


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_fits_one_argument_and_is_ascii(name):
    assert SCRIPTS[name].isascii()
    assert len(SCRIPTS[name]) < ARGUMENT // 2
