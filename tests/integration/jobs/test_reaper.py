"""The sweep ends what was released or expired, and nothing else."""

import uuid

import pytest

from tests.rig.jobs import Service
from tests.rig.waiting import until
from worker.failures.model import Category, InvalidRequest, OperationFailed
from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN, Sandbox, Spec
from worker.sandboxes.deadline import Deadline


def new_sandbox(made: Service, provider: str, run_id: str) -> Sandbox:
    labels = {LABEL_RUN: run_id, LABEL_REQUEST: f"request-{uuid.uuid4()}"}
    return made.services.providers.get(provider).create(Spec(), labels, deadline=Deadline.after(30))


def lives(made: Service, sandbox: Sandbox, run_id: str) -> bool:
    provider = made.services.providers.get(sandbox.provider)
    try:
        provider.connect(sandbox.id, {LABEL_RUN: run_id}, deadline=Deadline.after(30))
    except OperationFailed as lost:
        return lost.failure.category is not Category.SANDBOX_LOST
    return True


def sweep(made: Service) -> None:
    made.send("maintenance.sweep", {"schema": 1})


def test_what_is_due_is_ended_and_what_is_not_stays(made: Service, provider: str):
    registry = made.services.sandboxes
    run_id = f"run-{uuid.uuid4().hex[:8]}"
    kept, expired, given_up, held = (new_sandbox(made, provider, run_id) for _ in range(4))
    registry.keep(provider, kept.id, run_id=run_id, seconds=600)
    registry.keep(provider, expired.id, run_id=run_id, seconds=0.01)
    registry.give_up(provider, given_up.id, run_id=run_id)
    registry.keep(provider, held.id, run_id=run_id, seconds=0.01)
    registry.hold(provider, held.id, run_id=run_id, task_id="t", seconds=600)

    sweep(made)
    until(lambda: len(registry.of_run(run_id)) == 2, what="two are forgotten")

    assert [lives(made, sandbox, run_id) for sandbox in (kept, expired, given_up, held)] == [True, False, False, True]
    released = [data["reason"] for name, data in made.events(run_id) if name == "sandbox.released"]
    assert released == ["reaped", "reaped"]
    for sandbox in (kept, held):
        sandbox.release(deadline=Deadline.after(30))


def test_one_that_is_gone_already_is_forgotten(made: Service, provider: str):
    run_id = f"run-{uuid.uuid4().hex[:8]}"
    sandbox = new_sandbox(made, provider, run_id)
    sandbox.release(deadline=Deadline.after(30))
    made.services.sandboxes.give_up(provider, sandbox.id, run_id=run_id)

    sweep(made)

    until(lambda: not made.services.sandboxes.of_run(run_id), what="it is forgotten")
    assert made.events(run_id) == []


def test_a_sandbox_of_another_run_is_never_ended(made: Service, provider: str):
    run_id, other = (f"run-{uuid.uuid4().hex[:8]}" for _ in range(2))
    theirs = new_sandbox(made, provider, other)
    made.services.sandboxes.give_up(provider, theirs.id, run_id=run_id)

    sweep(made)

    until(lambda: not made.services.sandboxes.of_run(run_id), what="it is forgotten")
    assert lives(made, theirs, other)
    with pytest.raises(InvalidRequest):
        lives(made, theirs, run_id)
    theirs.release(deadline=Deadline.after(30))


def test_keep_and_extend_leave_what_they_promise(made: Service, provider: str):
    url = made.public(f"kept-{provider}")
    outcome = made.outcome(made.clone(url, provider=provider, run_id="run-kept", after={"keep": 5000}))
    sandbox = outcome.result["sandbox"]
    (kept,) = made.services.sandboxes.of_run("run-kept")
    before = kept.due

    request = {"schema": 1, "run_id": "run-kept", "sandbox": sandbox, "seconds": 9000}
    extended = made.outcome(made.send("sandbox.extend", request))
    shorter = made.outcome(made.send("sandbox.extend", request | {"seconds": 10}))

    (kept,) = made.services.sandboxes.of_run("run-kept")
    assert extended.result == {"sandbox": sandbox, "seconds": 9000}
    assert shorter.result["seconds"] == 10
    assert 3900 < kept.due - before <= 4400
    release = {key: request[key] for key in ("schema", "run_id", "sandbox")}
    assert made.outcome(made.send("sandbox.release", release)).result["released"] is True


def test_after_release_ends_the_sandbox(made: Service, provider: str):
    url = made.public(f"gone-{provider}")

    outcome = made.outcome(made.clone(url, provider=provider, run_id="run-gone", after={"release": True}))

    assert outcome.state == "SUCCESS"
    assert made.services.sandboxes.of_run("run-gone") == []
    assert [name for name, _ in made.events("run-gone")][-1] == "sandbox.released"
