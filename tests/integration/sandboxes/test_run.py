"""Commands, on every driver and every kind of shell."""

import threading
import time

import pytest

from tests.integration.sandboxes.helpers import running, soon, wait_for
from tests.rig.waiting import promptly
from worker.failures.model import Cancelled, EndedBy, InvalidRequest, OperationFailed
from worker.sandboxes.deadline import Deadline


def sh(sandbox, script, deadline=None, **more):
    return sandbox.run(["sh", "-c", script], deadline=deadline or soon(), **more)


class TestOutcome:
    def test_output_and_exit_code(self, sandbox):
        done = sh(sandbox, "echo out; echo err >&2; exit 7")
        assert (done.exit_code, done.signal, done.ended_by) == (7, None, EndedBy.ITSELF)
        assert (done.stdout, done.stderr) == (b"out\n", b"err\n")
        assert not done.ok

    @pytest.mark.parametrize("code", [0, 1, 2, 3, 125, 126, 127, 128, 129, 255])
    def test_exit_codes_are_kept(self, sandbox, code):
        done = sh(sandbox, f"exit {code}")
        assert (done.exit_code, done.signal, done.ok) == (code, None, code == 0)

    @pytest.mark.parametrize("name", ["KILL", "TERM", "SEGV", "ABRT"])
    def test_a_signal_that_nobody_of_us_sent(self, sandbox, name):
        done = sh(sandbox, f"kill -{name} $$; sleep 5")
        assert (done.exit_code, done.signal, done.ended_by) == (None, f"SIG{name}", EndedBy.UNKNOWN)

    def test_a_program_that_is_not_there(self, sandbox):
        done = sandbox.run(["no-such-program"], deadline=soon())
        assert (done.exit_code, done.ended_by) == (127, EndedBy.ITSELF)

    def test_a_directory_that_is_not_there(self, sandbox):
        assert sandbox.run(["true"], cwd="/no/such", deadline=soon()).exit_code == 126

    def test_arguments_arrive_as_they_are(self, sandbox):
        hostile = ["$(id)", "a b", "'", '"', "-n", "", "\n", "*", ";true"]
        done = sandbox.run(["sh", "-c", 'for a; do printf "%s\\0" "$a"; done', "sh", *hostile], deadline=soon())
        assert done.stdout.decode().split("\0")[:-1] == hostile

    @pytest.mark.parametrize("argv", [[], [""], ["a\0b"], ["a", 1]])
    def test_arguments_no_program_could_take(self, sandbox, argv):
        with pytest.raises(InvalidRequest, match="argv: malformed"):
            sandbox.run(argv, deadline=soon())

    def test_the_workspace_is_where_it_begins(self, sandbox):
        assert sandbox.run(["pwd"], deadline=soon()).stdout.decode() == f"{sandbox.layout.workspace}\n"
        assert sandbox.run(["pwd"], cwd="/", deadline=soon()).stdout == b"/\n"


class TestEnvironment:
    def test_is_built_and_not_inherited(self, sandbox, monkeypatch):
        monkeypatch.setenv("GIT_DIR", "/planted")
        monkeypatch.setenv("SANDFERRY_KEY", "planted")
        env = sandbox.run(["env"], env={"MINE": "x=y z"}, deadline=soon()).stdout.decode().splitlines()
        assert {"LC_ALL=C", "LANG=C", "GIT_TERMINAL_PROMPT=0", "MINE=x=y z"} <= set(env)
        assert "planted" not in "".join(env)
        assert not any(line.startswith("OLDPWD=") for line in env)

    @pytest.mark.parametrize("name", ["", "A=B", "A B", "1A", "A\0", "é"])
    def test_a_name_no_shell_could_read(self, sandbox, name):
        with pytest.raises(InvalidRequest, match="env: malformed"):
            sandbox.run(["true"], env={name: "x"}, deadline=soon())

    def test_its_values_are_in_no_argv(self, sandbox):
        script = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"
        done = sh(sandbox, f'test -n "$TOKEN" && {script}', env={"TOKEN": "canary-5f1d"})
        assert done.exit_code == 0
        assert b"TOKEN" in done.stdout  # the script itself is seen there
        assert b"canary-5f1d" not in done.stdout


class TestStreams:
    def test_ten_megabytes(self, sandbox):
        done = sh(sandbox, "head -c 10000000 /dev/zero; echo end >&2", output_limit=20_000_000)
        assert (len(done.stdout), done.stderr, done.ok) == (10_000_000, b"end\n", True)

    def test_every_byte_value(self, sandbox):
        every = bytes(range(256)) * 300
        assert sandbox.run(["cat"], stdin=every, deadline=soon()).stdout == every

    def test_stdin_of_three_megabytes(self, sandbox):
        done = sandbox.run(["cat"], stdin=b"x" * 3_000_000, output_limit=4_000_000, deadline=soon())
        assert done.stdout == b"x" * 3_000_000

    @pytest.mark.parametrize("stdin", [None, b""])
    def test_no_stdin_is_an_empty_one(self, sandbox, stdin):
        assert sandbox.run(["cat"], stdin=stdin, deadline=soon(5)).ok

    def test_stdin_that_nobody_reads(self, sandbox):
        assert sandbox.run(["true"], stdin=b"x" * 1_000_000, deadline=soon()).ok

    @pytest.mark.parametrize(("redirect", "stream"), [("", "stdout"), (" >&2", "stderr")])
    def test_a_stream_past_its_limit_ends_the_command(self, sandbox, redirect, stream):
        done = sh(sandbox, f"yes marker-{stream}{redirect}", output_limit=1000)
        assert (done.ended_by, done.exit_code, len(getattr(done, stream))) == (EndedBy.OUTPUT_LIMIT, None, 1000)
        assert not running(sandbox, f"marker-{stream}")

    def test_exactly_the_limit_is_within_it(self, sandbox):
        done = sh(sandbox, "head -c 1000 /dev/zero", output_limit=1000)
        assert (done.ok, len(done.stdout)) == (True, 1000)

    def test_a_background_child_does_not_hold_the_result(self, sandbox):
        begun = time.monotonic()
        done = sh(sandbox, "echo begun; sleep 31 & exit 3")
        assert (done.stdout, done.exit_code) == (b"begun\n", 3)
        assert time.monotonic() - begun < promptly(3)

    @pytest.mark.parametrize("pause", ["0.02", "0.2"])
    def test_nor_does_one_that_goes_on_talking(self, sandbox, pause):
        begun = time.monotonic()
        done = sh(sandbox, f"(for n in $(seq 1 {int(20 / float(pause))}); do echo x; sleep {pause}; done) & exit 3")
        assert (done.exit_code, done.ended_by) == (3, EndedBy.ITSELF)
        assert set(done.stdout.split()) <= {b"x"}
        assert time.monotonic() - begun < promptly(5)

    def test_quick_commands_lose_nothing(self, sandbox):
        for number in range(150):
            assert sandbox.run(["echo", str(number)], deadline=soon()).stdout == f"{number}\n".encode()


class TestDeadline:
    def test_ends_the_command(self, sandbox):
        begun = time.monotonic()
        done = sandbox.run(["sleep", "3232"], deadline=Deadline.after(0.5))
        assert (done.ended_by, done.exit_code, done.signal) == (EndedBy.DEADLINE, None, "SIGTERM")
        assert time.monotonic() - begun < promptly(2)
        assert not running(sandbox, "sleep 3232")

    def test_ends_one_that_ignores_term(self, sandbox):
        script = "trap '' TERM; while :; do sleep 3333; done"
        done = sh(sandbox, script, Deadline.after(0.5))
        assert (done.ended_by, done.signal) == (EndedBy.DEADLINE, "SIGKILL")
        assert not running(sandbox, "sleep 3333")

    def test_ends_the_whole_group(self, sandbox):
        script = "trap '' TERM; (sleep 3434 &) ; ( (sleep 3434; true) & ) ; sleep 3434"
        done = sh(sandbox, script, Deadline.after(0.5))
        assert done.ended_by is EndedBy.DEADLINE
        assert not running(sandbox, "sleep 3434")

    def test_keeps_what_came_before(self, sandbox):
        done = sh(sandbox, "echo early; sleep 35", Deadline.after(0.7))
        assert (done.ended_by, done.stdout) == (EndedBy.DEADLINE, b"early\n")

    def test_a_flood_does_not_delay_it(self, sandbox):
        begun = time.monotonic()
        done = sh(sandbox, "yes flood-36", Deadline.after(0.7), output_limit=10**9)
        assert done.ended_by is EndedBy.DEADLINE
        assert time.monotonic() - begun < promptly(10), "`yes` would go on for ever; a loaded machine ends it late"
        assert not running(sandbox, "flood-36")

    def test_one_that_has_passed_starts_nothing(self, sandbox):
        with pytest.raises(OperationFailed) as failed:
            sandbox.run(["true"], deadline=Deadline.after(-1))
        assert failed.value.failure.reason == "deadline"

    def test_cancel_ends_it_promptly(self, sandbox):
        cancel = threading.Event()
        cancelled_at = []

        def cancel_once_it_runs():
            wait_for(lambda: running(sandbox, "sleep 3737"))
            cancelled_at.append(time.monotonic())
            cancel.set()

        thread = threading.Thread(target=cancel_once_it_runs)
        thread.start()
        done = sandbox.run(["sleep", "3737"], deadline=Deadline.after(20, cancel))
        took = time.monotonic() - cancelled_at[0]
        thread.join()
        assert done.ended_by is EndedBy.CANCELLED
        assert took < promptly(1)
        assert not running(sandbox, "sleep 3737")

    def test_cancelled_before_it_began(self, sandbox):
        cancel = threading.Event()
        cancel.set()
        with pytest.raises(Cancelled):
            sandbox.run(["true"], deadline=Deadline.after(20, cancel))
