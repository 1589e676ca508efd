"""What only Daytona and its SDK can get wrong."""

import os

import pytest
from daytona import Daytona, DaytonaConfig, DaytonaError

from tests.doubles import hosted_faults as faults
from tests.integration.sandboxes.helpers import soon
from tests.rig import hosted
from worker.failures.classify import classify
from worker.failures.model import Category, OperationFailed
from worker.sandboxes.base import Spec
from worker.sandboxes.daytona.cloud import MINUTE
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.registry import Registry

COMMAND = {"path": r"process/execute$"}


@pytest.fixture
def sandbox(daytona_provider, labels):
    return daytona_provider.create(Spec(ttl=600), labels, deadline=soon())


def bare_client(double):
    return Daytona(DaytonaConfig(api_key=double.api_key, api_url=double.api_url, target="local"))


class TestRepeatedPosts:
    def test_the_trap_is_there(self, sandbox, daytona_double):
        """The SDK's own exec: the server runs the command four times (``RemoteDisconnectedRetry(3)``)."""
        daytona_double.fault(faults.cut_after, times=None, **COMMAND)
        with pytest.raises(Exception):  # noqa: B017 - the SDK's own
            bare_client(daytona_double).get(sandbox.id).process.exec("echo ran >>$HOME/workspace/ran", timeout=5)
        daytona_double.faults.clear()
        assert sandbox.run(["cat", "ran"], deadline=soon()).stdout == b"ran\n" * 4

    def test_ours_runs_once(self, sandbox, daytona_double):
        daytona_double.fault(faults.cut_after, times=None, **COMMAND)
        with pytest.raises(Exception):  # noqa: B017 - the SDK's own
            sandbox.run(["sh", "-c", "echo ran >>ran"], deadline=soon())
        daytona_double.faults.clear()
        assert sandbox.run(["cat", "ran"], deadline=soon()).stdout == b"ran\n"


class TestExceptions:
    @pytest.mark.parametrize(
        ("act", "category"),
        [
            (faults.cut_before, Category.TRANSIENT_NETWORK),
            (faults.status(502, b"<html>"), Category.TRANSIENT_SERVER),
            (faults.json_status(503, {"statusCode": 503, "message": "busy"}), Category.TRANSIENT_SERVER),
            (faults.json_status(429, {"statusCode": 429, "message": "Too many requests"}), Category.RATE_LIMITED),
            (faults.json_status(401, {"statusCode": 401, "message": "Unauthorized"}), Category.AUTH_DENIED),
            (faults.json_status(200, {"items": [{"id": 1}], "nextCursor": None}), Category.TRANSIENT_SERVER),
            (
                faults.json_status(400, {"statusCode": 400, "message": "Total CPU limit exceeded."}),
                Category.POLICY_DENIED,
            ),
        ],
        ids=["cut", "502 html", "503", "429", "401", "no sandbox", "quota"],
    )
    def test_of_the_api(self, daytona_provider, daytona_double, labels, act, category):
        daytona_double.fault(act, path="/api/sandbox", times=None)
        with pytest.raises(Exception) as raised:
            daytona_provider.find(labels, deadline=soon())
        assert classify(daytona_provider.facts(raised.value, operation="clone", stage="acquire")).category is category

    def test_a_page_instead_of_a_file(self, daytona_provider, daytona_double, sandbox):
        daytona_double.fault(faults.status(200, b"<html>"), path="/files/bulk-download", times=None)
        with pytest.raises(DaytonaError) as raised:
            list(sandbox.read("/etc/hostname", deadline=soon()))
        judged = classify(daytona_provider.facts(raised.value, operation="clone", stage="git"))
        assert (judged.category, judged.reason) == (Category.TRANSIENT_SERVER, "malformed_answer")

    def test_the_synchronous_sdks_bare_error_is_read_through_its_causes(self, tmp_path):
        with hosted.double("daytona", tmp_path) as double:
            client, provider = bare_client(double), Registry(hosted.provider_settings("daytona", double)).get("daytona")
        with pytest.raises(DaytonaError) as raised:
            client.get("0" * 8)
        assert type(raised.value) is DaytonaError
        failure = provider.facts(raised.value, operation="clone", stage="acquire")
        assert failure.http_status is None
        assert classify(failure).category is Category.TRANSIENT_NETWORK


class TestCreate:
    def test_a_name_another_sandbox_has(self, daytona_provider, daytona_double, labels):
        made = daytona_provider.create(Spec(), labels, deadline=soon())
        daytona_double.machines.get(made.id).labels = {"com.example": "theirs"}
        again = daytona_provider.create(Spec(), labels, deadline=soon(60))
        assert again.id != made.id
        assert len(daytona_double.machines.living()) == 2

    def test_a_sandbox_that_boots(self, tmp_path, labels):
        with hosted.double("daytona", tmp_path, boot=1.0) as double:
            provider = Registry(hosted.provider_settings("daytona", double)).get("daytona")
            assert provider.create(Spec(), labels, deadline=soon()).run(["true"], deadline=soon()).ok

    def test_one_that_does_not_get_ready_in_time(self, tmp_path, labels):
        with hosted.double("daytona", tmp_path, boot=60.0) as double:
            provider = Registry(hosted.provider_settings("daytona", double)).get("daytona")
            with pytest.raises(OperationFailed) as failed:
                provider.create(Spec(), labels, deadline=Deadline.after(1.5))
            assert failed.value.failure.reason == "deadline"
            for found in provider.find(labels, deadline=soon()):
                found.release(deadline=soon())
            assert double.machines.living() == []

    def test_a_stopped_one_is_lost(self, daytona_provider, daytona_double, sandbox, labels):
        daytona_double.machines.get(sandbox.id).state = "stopped"
        with pytest.raises(OperationFailed) as failed:
            sandbox.run(["true"], deadline=soon())
        assert failed.value.failure.category is Category.SANDBOX_LOST

    def test_a_lease_is_whole_minutes_and_never_less(self, sandbox):
        until = sandbox.lease_until(deadline=soon())
        sandbox.keep_alive(601, deadline=soon())
        assert 0 < sandbox.lease_until(deadline=soon()) - until <= MINUTE + 30


def test_a_client_of_a_forked_child_is_its_own(daytona_provider, labels, sandbox):
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        found = daytona_provider.find(labels, deadline=soon(10))
        os.write(into, found[0].id.encode() if found else b"none")
        os._exit(0)
    os.close(into)
    os.waitpid(pid, 0)
    assert os.read(out, 100).decode() == sandbox.id
