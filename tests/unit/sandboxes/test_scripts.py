"""The scripts that run inside, in a shell of this machine."""

import signal
import subprocess

import pytest

from tests.rig.waiting import until
from worker.sandboxes.docker import scripts


def sh(script, *args):
    argv = ["/bin/sh", "-c", script, "sandferry", *map(str, args)]
    return subprocess.run(argv, capture_output=True, text=True, check=False, start_new_session=True, timeout=20)


@pytest.fixture
def record(tmp_path):
    return tmp_path / "record"


def wrapped(record, *argv, stdin="/dev/null"):
    return sh(scripts.WRAPPER, record, 5, stdin, "/", *argv)


def test_a_command_that_was_ended_before_it_began_never_begins(record, tmp_path):
    ended = sh(scripts.END, record, 5, 50)
    assert (ended.returncode, ended.stdout) == (0, "")
    late = wrapped(record, "touch", tmp_path / "ran")
    assert (late.returncode, late.stderr) == (125, "")
    assert not (tmp_path / "ran").exists()


def test_a_command_whose_record_cannot_be_written_says_why(tmp_path):
    record = tmp_path / "gone" / "record"
    done = wrapped(record, "touch", tmp_path / "ran")
    assert done.returncode == 125
    assert done.stderr.startswith(f"refused {record} cp: ")
    assert done.stderr.endswith("No such file or directory\n")
    assert not (tmp_path / "ran").exists()


def test_end_removes_the_stdin_of_one_that_never_began(record, tmp_path):
    stdin = tmp_path / "record.in"
    stdin.write_text("private")
    assert sh(scripts.END, record, 5, 50).returncode == 0
    assert not stdin.exists()


def test_end_leaves_a_stranger_with_the_same_pid_alone(record):
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as stranger:
        record.write_text(f"{stranger.pid} 1\n")  # another start time: the pid was used again
        assert sh(scripts.END, record, 1, 1).stdout.strip() == ""
        assert stranger.poll() is None
        stranger.kill()


def test_the_wrapper_hands_on_stdin_and_exit_code(record, tmp_path):
    stdin = tmp_path / "record.in"
    stdin.write_text("given")
    done = wrapped(record, "sh", "-c", "cat; exit 9", stdin=stdin)
    assert (done.returncode, done.stdout) == (9, "given")
    assert not stdin.exists()


def recorded(tmp_path, name, *argv):
    """A command that runs with a record of this name."""
    argv = ["/bin/sh", "-c", scripts.WRAPPER, "sandferry", str(tmp_path / name), "60", "/dev/null", "/", *argv]
    running = subprocess.Popen(argv, start_new_session=True)
    until(lambda: (tmp_path / name).exists() and (tmp_path / name).read_text(), what="it is recorded")
    return running


def test_end_all_ends_what_has_the_tag_and_nothing_else(tmp_path):
    with (
        recorded(tmp_path, "a.1", "sleep", "60") as first,
        recorded(tmp_path, "a.2", "sh", "-c", "trap '' TERM; sleep 60; sleep 60") as stubborn,
        recorded(tmp_path, "ab.1", "sleep", "60") as other,
    ):
        (tmp_path / "a.tombstone").touch()
        (tmp_path / "a.3.in").write_text("private")
        done = sh(scripts.END_ALL, tmp_path, "a", scripts.END, 5, 50)
        assert (done.returncode, done.stdout) == (0, "")
        assert (first.wait(5), stubborn.wait(5), other.poll()) == (-signal.SIGTERM, -signal.SIGKILL, None)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tombstone", "ab.1"]
        assert sh(scripts.END_ALL, tmp_path, "ab", scripts.END, 5, 50).returncode == 0
        assert other.wait(5) == -signal.SIGTERM


def test_end_all_finds_nothing_where_nothing_was_recorded(tmp_path):
    assert sh(scripts.END_ALL, tmp_path / "absent", "a", scripts.END, 5, 50).returncode == 0
