"""Faults under way on a hosted provider: a command runs once, its answer arrives, or the truth is told."""

import os
import signal
import subprocess
import threading
import time
from contextlib import contextmanager

import pytest
from billiard.exceptions import SoftTimeLimitExceeded

from tests.doubles import hosted_faults as faults
from tests.integration.sandboxes.helpers import running, soon, wait_for
from tests.rig.waiting import promptly
from worker.failures.classify import classify
from worker.failures.model import Category, EndedBy, OperationFailed
from worker.sandboxes.base import Spec
from worker.sandboxes.deadline import Deadline

COMMAND = {"path": r"process/execute$|Process/Start$"}
FILES = {"path": r"/files"}
HTML = b"<html>502 Bad Gateway</html>"


@pytest.fixture
def sandbox(hosted_provider, hosted_double, labels):
    return hosted_provider.create(Spec(ttl=600), labels, deadline=soon())


@contextmanager
def mounted(place):
    """A small file system there."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=20", "tmpfs", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def judged(provider, exc):
    return classify(provider.facts(exc, operation="clone", stage="git"))


class TestCommandsRunOnce:
    @pytest.mark.parametrize(
        "act",
        [
            faults.cut_before,
            faults.cut_after,
            faults.cut_body(30),
            faults.status(502, HTML),
            faults.status(502, HTML, acts=True),
            faults.status(503, b""),
            faults.json_status(500, {"code": "internal", "statusCode": 500, "message": "oops"}, acts=True),
        ],
        ids=["cut before", "cut after", "cut in the answer", "502", "502 after", "503", "500 after"],
    )
    def test_whatever_becomes_of_the_answer(self, sandbox, hosted_double, act):
        hosted_double.fault(act, times=2, **COMMAND)
        done = sandbox.run(["sh", "-c", "echo ran >>ran; echo out; exit 7"], deadline=soon())
        assert (done.exit_code, done.stdout) == (7, b"out\n")
        assert sandbox.run(["cat", "ran"], deadline=soon()).stdout == b"ran\n"

    def test_an_answer_lost_while_it_runs(self, sandbox, hosted_double):
        hosted_double.fault(self.abandoned, **COMMAND)
        done = sandbox.run(["sh", "-c", "echo ran >>ran; sleep 1; echo out"], deadline=soon())
        assert (done.exit_code, done.stdout) == (0, b"out\n")
        assert sandbox.run(["cat", "ran"], deadline=soon()).stdout == b"ran\n"

    @staticmethod
    def abandoned(request, proceed):
        def carry_on():
            body = proceed().body
            if not isinstance(body, bytes):
                list(body)

        threading.Thread(target=carry_on, daemon=True).start()
        time.sleep(0.4)
        return faults.cut_before(request, proceed)

    def test_two_questions_at_once(self, sandbox):
        results = []
        threads = [
            threading.Thread(target=lambda n=n: results.append(sandbox.run(["echo", str(n)], deadline=soon()).stdout))
            for n in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(results) == [b"0\n", b"1\n", b"2\n", b"3\n"]

    def test_a_server_that_stays_away_is_told_and_nothing_runs(self, sandbox, hosted_provider, hosted_double):
        hosted_double.fault(faults.cut_before, times=None, **COMMAND)
        with pytest.raises(Exception) as raised:
            sandbox.run(["touch", "never"], deadline=soon())
        assert judged(hosted_provider, raised.value).category is Category.TRANSIENT_NETWORK
        hosted_double.faults.clear()
        assert sandbox.run(["ls"], deadline=soon()).stdout == b""

    @pytest.mark.parametrize(
        "act",
        [
            faults.status(500, HTML),
            faults.json_status(500, {"code": "internal", "statusCode": 500, "message": "oops"}),
            faults.status(502, HTML),
            faults.status(503, b"away"),
            faults.status(520, HTML),
            faults.status(200, HTML),
        ],
        ids=["500", "500 json", "502", "503", "520", "a page"],
    )
    def test_a_server_that_stumbles_for_long_may_be_asked_later(self, sandbox, hosted_provider, hosted_double, act):
        hosted_double.fault(act, times=None, **COMMAND)
        with pytest.raises(Exception) as raised:
            sandbox.run(["true"], deadline=soon())
        category = judged(hosted_provider, raised.value).category
        assert category in (Category.TRANSIENT_SERVER, Category.TRANSIENT_NETWORK)

    def test_a_command_that_cannot_be_ended_is_ambiguous(self, sandbox, hosted_double, monkeypatch):
        monkeypatch.setattr("worker.sandboxes.hosted.command._PATIENCE", 2.0)
        hosted_double.fault(faults.cut_before, skip=1, times=None, **COMMAND)
        with pytest.raises(OperationFailed) as failed:
            sandbox.run(["sleep", "471"], deadline=Deadline.after(1))
        assert failed.value.failure.category is Category.TIMEOUT_AMBIGUOUS

    def test_garbage_for_an_answer(self, sandbox, hosted_provider, hosted_double):
        sandbox.run(["true"], deadline=soon())
        home = sandbox.layout.workspace.rpartition("/")[0]
        profile = "base64() { echo '!!!'; }; export -f base64 2>/dev/null; setsid() { echo nonsense; }"
        sandbox.write(f"{home}/.profile", profile.encode(), deadline=soon())
        sandbox.write(f"{home}/.bash_profile", b"echo sandferry; yes | head -c 300000", deadline=soon())
        assert sandbox.run(["echo", "still"], deadline=soon()).stdout == b"still\n"

    def test_a_command_that_removes_what_we_know_of_it(self, sandbox):
        run = f"{sandbox.layout.scratch}/exec/run"
        done = sandbox.run(["sh", "-c", 'rm -rf "$1" && : >"$1"', "sh", run], deadline=soon())
        assert (done.exit_code, done.ended_by, done.ok) == (None, EndedBy.UNKNOWN, False)
        with pytest.raises(OperationFailed) as failed:
            sandbox.run(["true"], deadline=soon())
        assert (failed.value.failure.category, failed.value.failure.reason) == (
            Category.INVALID_REQUEST,
            "layout_invalid",
        )

    @pytest.mark.parametrize("with_inodes", [True, False])
    def test_a_full_disk_is_named(self, sandbox, hosted_provider, with_inodes):
        run = f"{sandbox.layout.scratch}/exec/run"
        with mounted(run):
            fill = "cat /dev/zero >f 2>/dev/null; "
            if not with_inodes:
                fill += "n=0; while mkdir d$n 2>/dev/null; do n=$((n + 1)); done"
            subprocess.run(["sh", "-c", fill], cwd=run, check=False)
            with pytest.raises(OperationFailed) as failed:
                sandbox.run(["true"], deadline=soon())
        verdict = classify(failed.value.failure)
        assert (verdict.category, verdict.reason) == (Category.RESOURCE_EXHAUSTED, "disk_full")

    def test_a_command_that_fills_the_disk_has_an_end(self, sandbox):
        with mounted(f"{sandbox.layout.scratch}/exec/run"):
            fill = f"cat /dev/zero >{sandbox.layout.scratch}/exec/run/f; exit 7"
            done = sandbox.run(["sh", "-c", fill], deadline=soon())
        assert (done.exit_code, done.ended_by) == (7, EndedBy.ITSELF)

    def test_large_commands_and_arguments(self, sandbox):
        argument = "x" * 100_000
        done = sandbox.run(["sh", "-c", 'printf %s "$1" | wc -c', "sh", argument], deadline=soon())
        assert done.stdout.strip() == b"100000"


class TestLost:
    def test_while_a_command_runs(self, sandbox, hosted_double):
        machine = hosted_double.machines.living()[0]
        threading.Timer(0.5, machine.end).start()
        begun = time.monotonic()
        with pytest.raises(OperationFailed) as failed:
            sandbox.run(["sleep", "402"], deadline=soon())
        assert failed.value.failure.reason == "sandbox_lost"
        assert time.monotonic() - begun < promptly(5)

    def test_is_said_at_once_and_nothing_new_is_made(self, sandbox, hosted_double):
        hosted_double.machines.living()[0].end()
        before = len(hosted_double.seen)
        with pytest.raises(OperationFailed) as failed:
            sandbox.run(["true"], deadline=soon())
        assert failed.value.failure.category is Category.SANDBOX_LOST
        assert len(hosted_double.seen) - before <= 4  # the call, the SDK's probe of health, our look
        assert hosted_double.machines.made == 1

    def test_its_lease_was_over(self, hosted_provider, hosted_double, sandbox):
        hosted_double.machines.living()[0].end_at = time.time() - 1
        with pytest.raises(OperationFailed) as failed:
            sandbox.keep_alive(60, deadline=soon())
        assert failed.value.failure.reason == "sandbox_lost"

    def test_a_release_whose_answer_was_lost(self, sandbox, hosted_double):
        hosted_double.fault(faults.cut_after, method="DELETE")
        sandbox.release(deadline=soon())
        assert hosted_double.machines.living() == []


class TestFiles:
    @pytest.mark.parametrize("act", [faults.cut_before, faults.cut_after, faults.status(502, HTML)])
    def test_an_upload_is_repeated(self, sandbox, hosted_double, act):
        data = os.urandom(300_000)
        hosted_double.fault(act, method="POST", **FILES)
        sandbox.write(f"{sandbox.layout.workspace}/f", data, deadline=soon())
        assert b"".join(sandbox.read(f"{sandbox.layout.workspace}/f", deadline=soon())) == data

    def test_a_download_that_was_cut_is_no_end(self, sandbox, hosted_provider, hosted_double):
        path = f"{sandbox.layout.workspace}/f"
        sandbox.write(path, os.urandom(500_000), deadline=soon())
        hosted_double.fault(faults.cut_body(200_000), **FILES)
        with pytest.raises(Exception) as raised:
            list(sandbox.read(path, deadline=soon()))
        assert judged(hosted_provider, raised.value).category is Category.TRANSIENT_NETWORK

    @pytest.mark.parametrize(
        ("code", "category"),
        [(401, Category.AUTH_DENIED), (429, Category.RATE_LIMITED), (503, Category.TRANSIENT_SERVER)],
    )
    def test_statuses_of_file_calls(self, sandbox, hosted_provider, hosted_double, code, category):
        path = f"{sandbox.layout.workspace}/f"
        sandbox.write(path, b"x", deadline=soon())
        act = faults.json_status(code, {"code": code, "statusCode": code, "message": "no"})
        hosted_double.fault(act, times=None, **FILES)
        with pytest.raises(Exception) as raised:
            list(sandbox.read(path, deadline=soon()))
        assert judged(hosted_provider, raised.value).category is category


class TestPrompt:
    def test_a_silent_server_does_not_outlast_the_deadline(self, sandbox, hosted_provider, hosted_double, labels):
        hosted_double.fault(faults.slow(5), method="GET", times=None)
        begun = time.monotonic()
        with pytest.raises(OperationFailed) as failed:
            hosted_provider.find(labels, deadline=Deadline.after(0.5))
        assert failed.value.failure.ended_by is EndedBy.DEADLINE
        assert time.monotonic() - begun < promptly(1.5)

    def test_a_download_that_stands_still(self, sandbox, hosted_double):
        path = f"{sandbox.layout.workspace}/f"
        sandbox.write(path, b"x" * 200_000, deadline=soon())
        hosted_double.fault(_stalled, **FILES)
        begun = time.monotonic()
        with pytest.raises(OperationFailed) as failed:
            list(sandbox.read(path, deadline=Deadline.after(1)))
        assert failed.value.failure.reason == "deadline"
        assert time.monotonic() - begun < promptly(3)

    def test_a_soft_limit_is_heard_at_once_and_stays_what_it_is(self, sandbox):
        def interrupt(*_):
            raise SoftTimeLimitExceeded

        previous = signal.signal(signal.SIGUSR1, interrupt)
        try:
            threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGUSR1)).start()
            begun = time.monotonic()
            with pytest.raises(SoftTimeLimitExceeded):
                sandbox.run(["sleep", "403"], deadline=soon())
            assert time.monotonic() - begun < promptly(4)
        finally:
            signal.signal(signal.SIGUSR1, previous)
        assert not running(sandbox, "sleep 403")

    def test_alarms_of_ours_go_off(self, hosted_provider, labels):
        rung = []
        previous = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.8)
            hosted_provider.create(Spec(), labels, deadline=soon()).run(["true"], deadline=soon())
            wait_for(lambda: rung, 3)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)

    def test_one_thread_serves_a_whole_process(self, sandbox, hosted_name):
        threads = [
            threading.Thread(target=sandbox.run, args=(["true"],), kwargs={"deadline": soon()}) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(thread.name == sandbox._loop.name for thread in threading.enumerate()) == 1


def _stalled(request, proceed):
    reply = proceed()

    def pieces():
        yield from [next(iter(reply.body))]
        time.sleep(4)

    return faults.Reply(reply.status, pieces(), reply.headers)
