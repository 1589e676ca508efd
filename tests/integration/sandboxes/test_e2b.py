"""What only E2B and its SDK can get wrong."""

import os
import signal
import struct
import subprocess
import sys
import time

import pytest

from tests.doubles import hosted_faults as faults
from tests.integration.sandboxes.helpers import soon
from worker.failures.classify import classify
from worker.failures.model import Category, OperationFailed
from worker.sandboxes.base import Spec
from worker.sandboxes.e2b import cloud

START = {"path": "Process/Start$"}


@pytest.fixture
def sandbox(e2b_provider, labels):
    return e2b_provider.create(Spec(ttl=600), labels, deadline=soon())


def in_child(work) -> str:
    """What ``work`` returns in a forked child, as text; a child that hangs is killed."""
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(into, str(work()).encode())
        except BaseException as exc:  # noqa: BLE001 - said to the parent
            os.write(into, f"{type(exc).__name__}: {exc}".encode())
        os._exit(0)
    os.close(into)
    end = time.monotonic() + 15
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return "hung"
        time.sleep(0.02)
    return os.read(out, 4096).decode()


class TestFork:
    def test_a_child_whose_parent_used_the_sdk_is_told_instead_of_hanging(self, e2b_provider, sandbox, labels):
        def work():
            try:
                e2b_provider.find(labels, deadline=soon())
            except OperationFailed as exc:
                return exc.failure.reason

        assert in_child(work) == "sdk_used_before_fork"

    def test_a_child_whose_parent_only_built_the_driver_works(self, e2b_provider, labels, monkeypatch):
        # The SDK's pools are the process's: other tests of this one used them, so a fresh interpreter is asked.
        settings = e2b_provider._cloud._settings
        code = f"""
import os, sys
from pathlib import Path
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.registry import Registry
from worker.sandboxes.settings import E2BSettings, ProviderSettings
provider = Registry(ProviderSettings(e2b=E2BSettings(
    api_key_file=Path({str(settings.api_key_file)!r}), api_url={settings.api_url!r}))).get("e2b")
import e2b
pid = os.fork()
if pid == 0:
    os._exit(40 + len(provider.find({{}}, deadline=Deadline.after(10))))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
        assert subprocess.run([sys.executable, "-c", code], check=False, timeout=30).returncode == 40


class TestForeignExceptions:
    def test_a_stream_without_its_end(self, sandbox, e2b_double):
        e2b_double.fault(_endless, **START)
        done = sandbox.run(["sh", "-c", "echo ran >>ran; cat ran"], deadline=soon())
        assert done.stdout == b"ran\n"

    @pytest.mark.parametrize(
        ("act", "category"),
        [
            (faults.cut_before, Category.TRANSIENT_NETWORK),
            (faults.status(500, b"<html>"), Category.TRANSIENT_SERVER),
            (faults.status(502, b"<html>"), Category.TRANSIENT_SERVER),
            (faults.json_status(503, {"no": "code"}), Category.TRANSIENT_SERVER),
            (faults.json_status(200, [{"no": "id"}]), Category.TRANSIENT_SERVER),
            (faults.cut_body(1), Category.TRANSIENT_NETWORK),
        ],
        ids=["cut", "500 html", "502 html", "no code", "no id", "cut body"],
    )
    def test_of_the_control_plane(self, e2b_provider, e2b_double, labels, act, category):
        e2b_double.fault(act, path="sandboxes", times=None)
        with pytest.raises(Exception) as raised:
            e2b_provider.find(labels, deadline=soon())
        assert classify(e2b_provider.facts(raised.value, operation="clone", stage="acquire")).category is category

    def test_no_key_is_no_riddle(self, e2b_provider, e2b_double, labels):
        e2b_double.api_key = "another"
        with pytest.raises(Exception) as raised:
            e2b_provider.find(labels, deadline=soon())
        failure = e2b_provider.facts(raised.value, operation="clone", stage="acquire")
        assert (classify(failure).category, failure.http_status) == (Category.AUTH_DENIED, 401)


def _endless(_, proceed):
    reply = proceed()
    whole = b"".join(reply.body)
    envelopes = []
    while whole:
        (size,) = struct.unpack(">xI", whole[:5])
        envelopes.append(whole[: 5 + size])
        whole = whole[5 + size :]
    return faults.Reply(reply.status, [*envelopes[:-2], envelopes[-1]], reply.headers)


class TestRequests:
    def test_a_request_timeout_is_what_was_meant(self, e2b_provider, e2b_double, labels, monkeypatch):
        monkeypatch.setattr(cloud, "_CALL", 2.0)  # the SDK would make four seconds of it
        e2b_double.fault(faults.slow(6), path="sandboxes", times=None)
        begun = time.monotonic()
        with pytest.raises(Exception) as raised:
            e2b_provider.find(labels, deadline=soon())
        assert 1.5 < time.monotonic() - begun < 3.5
        failure = e2b_provider.facts(raised.value, operation="clone", stage="acquire")
        assert classify(failure).category is Category.TIMEOUT_AMBIGUOUS

    def test_the_sdk_repeats_nothing_on_its_own(self, e2b_provider, e2b_double, labels):
        fault = e2b_double.fault(
            faults.json_status(503, {"code": 503, "message": "busy"}), path="sandboxes$", times=None
        )
        with pytest.raises(Exception):  # noqa: B017 - the SDK's own
            e2b_provider.find(labels, deadline=soon())
        assert fault.seen == 1

    def test_metadata_of_any_text(self, e2b_provider):
        labels = {"sandferry.run": "a/b c&d=é?%", "sandferry.request": "x+y#z"}
        made = e2b_provider.create(Spec(), labels, deadline=soon())
        assert [found.id for found in e2b_provider.find(labels, deadline=soon())] == [made.id]
        assert e2b_provider.find({**labels, "sandferry.run": "a"}, deadline=soon()) == []

    def test_more_sandboxes_than_a_page(self, e2b_provider, e2b_double):
        for number in range(105):
            e2b_double.machines.make(
                f"i{number:020d}", seconds=60, labels={"sandferry.run": "r", "sandferry.request": str(number)}, env={}
            )
        assert len(e2b_provider.find({"sandferry.run": "r"}, deadline=soon())) == 105
