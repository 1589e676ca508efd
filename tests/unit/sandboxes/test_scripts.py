"""The scripts that run inside, in a shell of this machine."""

import subprocess

import pytest

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
    assert late.returncode == 125
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


@pytest.mark.parametrize(
    ("leases", "kept"), [([], ["500"]), (["100", "400"], ["500"]), (["100", "900"], ["500", "900"])]
)
def test_a_lease_is_never_shortened(tmp_path, leases, kept):
    for lease in leases:
        (tmp_path / f"lease.{lease}").touch()
    assert sh(scripts.KEEP, tmp_path, 500).returncode == 0
    assert sorted(sh(scripts.LEASES, tmp_path).stdout.split()) == kept
