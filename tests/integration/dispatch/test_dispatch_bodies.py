"""What a body of a call cannot do any more, another one must not forget: that the call may have been sent."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tests.rig.faulty import Bench, Faults, processes_of
from tests.rig.tools import COUNTED, request, runs, tool
from tests.rig.waiting import until
from worker.failures.model import Cancelled, InvalidRequest
from worker.retrying.attempt import Postponed
from worker.retrying.causes import QUEUE_WAIT, WORKER_LOST, not_started
from worker.secrets import keyring
from worker.secrets.sealed import Plaintext, seal
from worker.secrets.subject import tool_subject

SETTING_UP = ["", "", "", ""]
"""Calls of a sandbox before a write is sent: stage, write, unpack, stage."""


@dataclass
class Sent:
    """A call that was sent, whose answer was lost, and which nobody could look for yet; its tool runs on."""

    bench: Bench
    wanted: dict[str, Any]
    carry: str
    count: Path

    def later(self, exc: Exception) -> str:
        """A later body that cannot even begin because of ``exc``; its cause."""
        task = self.bench.task
        attempt = self.bench.attempt("task-1", self.wanted["run_id"], 2, 2, self.carry)
        if isinstance(exc, Cancelled):
            attempt.deadline.cancel.set()
        failure = task.facts_of(exc, attempt)
        verdict = task.judge(failure, attempt, 60.0)
        assert not verdict.retry
        attempt.end()
        task.settle(task.parse(self.wanted), attempt, verdict)
        return str(task.cause(failure, verdict))

    def tool(self) -> list[int]:
        return processes_of(str(self.count.parent))


@pytest.fixture
def sent(tmp_path: Path, valkey_url: str):
    def make(effect: str = "write", after: str = "sleep 30") -> Sent:
        plan = SETTING_UP if effect != "read" else []
        # A read asks for its package when it is run, and its lost answer is no reason to look.
        plan = [*plan, "reset_during", "refused"] if plan else ["", "", "", "reset_during"]
        bench = Bench(tmp_path, valkey_url, Faults(plan, lambda _: 2.0))
        package = tool(COUNTED + after, effect=effect)
        bench.services.tools("default").put(package)
        wanted = request(str(package.descriptor.reference), env={"COUNT": str(tmp_path / "count")})
        state, _, carry = bench._body(wanted, "task-1", 1, 1, "")
        assert state == "RETRY"
        return Sent(bench, wanted, carry, tmp_path / "count")

    return make


@pytest.mark.parametrize(
    ("exc", "reason"),
    [
        (not_started("dispatch", WORKER_LOST), "worker_lost"),
        (not_started("dispatch", QUEUE_WAIT), "queue_wait"),
        (InvalidRequest("tool", "not_allowed"), "not_allowed"),
        (InvalidRequest("tool", "not_found"), "not_found"),
    ],
)
def test_a_write_that_was_sent_is_unknown_whatever_stops_a_later_body(sent, exc, reason):
    made = sent()
    assert made.later(exc) == f"managed_tool_outcome_unknown: stage=dispatch effect=write reason={reason}"
    assert runs(made.count) == 1


def test_a_read_that_was_sent_just_fails(sent):
    assert sent("read").later(InvalidRequest("tool", "not_found")) == "invalid_request: field=tool reason=not_found"


@pytest.mark.parametrize("effect", ["read", "write"])
def test_a_cancel_between_two_bodies_ends_the_tool(sent, effect):
    made = sent(effect)
    until(made.tool, what="the tool runs")

    assert made.later(Cancelled()).startswith("cancelled: ")

    until(lambda: made.tool() == [], seconds=5, what="no process of the call is left")
    assert runs(made.count) == 1


def test_a_secret_that_ended_meanwhile_costs_no_outcome(tmp_path: Path, valkey_url: str):
    """The receipt of a call is there to be read, whether the call could be sent anew or not."""
    count, secret = tmp_path / "count", "s3cr3t-value"
    bench = Bench(tmp_path, valkey_url, Faults([*SETTING_UP, "reset_after", "forget"], lambda most: most))
    keyring.new(tmp_path / "keyring.json")
    config = bench.services.settings
    bench.services.settings = config.model_copy(update={"keyring_file": tmp_path / "keyring.json"})
    ring = bench.services.keyring
    package = tool(COUNTED + 'echo "got $SECRET"')
    bench.services.tools("default").put(package)
    wanted = request(str(package.descriptor.reference), env={"COUNT": str(count)})
    ends = time.time() + 2
    plain = Plaintext(
        run_id=wanted["run_id"], operation="dispatch", subject=tool_subject(package.descriptor.digest),
        expires_at=ends, username="SECRET", secret=SecretStr(secret),
    )  # fmt: skip
    wanted["secrets"] = {"SECRET": seal(ring.current.public_key, plain)}

    def outlast_the_secret() -> None:
        until(lambda: time.time() > ends, what="the secret has ended")
        raise ConnectionRefusedError("the first look does not come through")

    bench.faults.forget = outlast_the_secret
    state, result = bench.deliver(wanted, "task-1")

    assert (state, result["output"], result["receipt"]) == ("SUCCESS", "got ***\n", "adopted")
    assert bench.faults.happened == ["reset_after", "forget"]
    assert runs(count) == 1
    again = bench.deliver({**wanted, "dispatch_id": "another"}, "task-2")
    refused = "managed_tool_dispatch_failed: stage=unseal effect=write category=auth_denied reason=token_expired"
    assert again == ("FAILURE", refused)
    assert runs(count) == 1


def test_a_tool_never_outlives_the_time_of_its_call(tmp_path: Path, valkey_url: str):
    count = tmp_path / "count"
    bench = Bench(tmp_path, valkey_url)
    package = tool(COUNTED + "echo begun; sleep 19")
    bench.services.tools("default").put(package)
    wanted = bench.task.parse(request(str(package.descriptor.reference), env={"COUNT": str(count)}))
    attempt = bench.attempt("task-1", wanted.run_id, 1, 1, "")
    attempt.spent = 20 + 120 - 23  # of its timeout and the margin

    with attempt.resources:
        result = bench.task.execute(wanted, attempt)

    assert (result["outcome"], result["output"]) == ("timed_out", "begun\n")
    assert attempt.deadline.remaining() > 10


def test_a_call_without_time_for_its_tool_is_not_sent(tmp_path: Path, valkey_url: str):
    count = tmp_path / "count"
    bench = Bench(tmp_path, valkey_url)
    package = tool(COUNTED)
    bench.services.tools("default").put(package)
    wanted = request(str(package.descriptor.reference), env={"COUNT": str(count)})
    attempt = bench.attempt("task-1", wanted["run_id"], 1, 1, "")
    attempt.spent = 20 + 120 - 15

    with attempt.resources, pytest.raises(Exception) as raised:
        bench.task.execute(bench.task.parse(wanted), attempt)

    failure = bench.task.facts_of(raised.value, attempt)
    verdict = bench.task.judge(failure, attempt, 15.0)
    assert str(bench.task.cause(failure, verdict)) == (
        "managed_tool_dispatch_failed: stage=dispatch effect=write category=timeout_ambiguous reason=deadline"
    )
    assert runs(count) == 0
    assert bench.deliver(wanted, "task-2")[0] == "SUCCESS"


def test_a_call_that_finds_no_slot_is_put_off(tmp_path: Path, valkey_url: str):
    bench = Bench(tmp_path, valkey_url)
    config = bench.services.settings
    bench.services.settings = config.model_copy(update={"provider_limits": {"local": 1}})
    bench.services.__dict__.pop("slots", None)
    assert bench.services.slots.take("local", "another-task")
    package = tool("echo done")
    bench.services.tools("default").put(package)
    wanted = bench.task.parse(request(str(package.descriptor.reference)))
    attempt = bench.attempt("task-1", wanted.run_id, 1, 1, "")

    with attempt.resources, pytest.raises(Postponed) as put_off:
        bench.task.execute(wanted, attempt)

    assert put_off.value.reason == "provider_full"
