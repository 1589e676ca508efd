"""Paused processes go on again, whatever happens to the capture."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.integration.capture.controlled import controlled, failure
from tests.rig.waiting import until
from worker.sandboxes.environment import SEARCH_PATH


def stopped(process):
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.fixture
def agent(bench):
    """A process of the sandbox."""
    bench.cloned()
    env = {"HOME": str(bench.tmp / "sandboxes" / bench.sandbox.id / "home"), "PATH": SEARCH_PATH}
    process = subprocess.Popen(["sleep", "600"], env=env, start_new_session=True)
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def stranger():
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def test_the_sandboxs_processes_are_paused_and_no_others(bench, agent, stranger):
    seen = bench.tmp / "seen"
    controlled(bench, "write-tree", f"cut -d' ' -f3 /proc/{agent.pid}/stat /proc/{stranger.pid}/stat >{seen}")
    result = bench.capture(pause=True)
    assert (result.text.quiesce, seen.read_text().split()) == ("pause", ["T", "S"])
    assert not stopped(agent)


def test_given_processes_are_paused(bench, agent, stranger):
    other = subprocess.Popen(["sleep", "600"], env={"HOME": os.environ["HOME"]}, start_new_session=True)
    try:
        assert bench.capture(pause=True, pids=(agent.pid,)).text.quiesce == "pause"
        assert not stopped(agent)
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize("end", ["exit 128", "kill -TERM 0; exec sleep 2", "kill -KILL 0; exec sleep 2"])
def test_paused_processes_go_on_after_any_failure(bench, agent, end):
    controlled(bench, "pack-objects", end)
    failure(bench, pause=True)
    until(lambda: not stopped(agent))


def test_a_process_that_was_stopped_before_stays_so(bench, agent):
    os.kill(agent.pid, signal.SIGSTOP)
    until(lambda: stopped(agent))
    bench.capture(pause=True)
    assert stopped(agent)
