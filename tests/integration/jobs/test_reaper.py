"""The sweep ends what was released or expired, and nothing else."""

import contextlib
import time
import uuid

import docker
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


def stop(made: Service, sandbox: Sandbox) -> None:
    """As a reboot of the host would: the sandbox is there, and nothing in it runs."""
    with contextlib.closing(docker.APIClient(made.env["SANDFERRY_DOCKER_URL"])) as api:
        api.kill(sandbox.id)
        until(lambda: not api.inspect_container(sandbox.id)["State"]["Running"], what="it has stopped")


def exists(made: Service, sandbox: Sandbox) -> bool:
    found = made.services.providers.get(sandbox.provider).find(sandbox.labels, deadline=Deadline.after(30))
    return [other.id for other in found] == [sandbox.id]


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


def test_one_that_stopped_is_ended_with_all_that_is_in_it(docker_service: Service):
    registry = docker_service.services.sandboxes
    run_id = f"run-{uuid.uuid4().hex[:8]}"
    reaped, released = (new_sandbox(docker_service, "docker", run_id) for _ in range(2))
    for sandbox in (reaped, released):
        stop(docker_service, sandbox)
    registry.give_up("docker", reaped.id, run_id=run_id)

    sweep(docker_service)
    until(lambda: not exists(docker_service, reaped), what="the reaper has removed it")
    request = {"schema": 1, "run_id": run_id, "sandbox": {"provider": "docker", "id": released.id}}
    outcome = docker_service.outcome(docker_service.send("sandbox.release", request))

    assert outcome.result["released"] is True
    assert not exists(docker_service, released)
    assert registry.of_run(run_id) == []


NO_SHELL = "rm -f /bin/sh /usr/bin/sh"
ENDLESS_SHELL = "cp /bin/sh /bin/real; printf '#!/bin/real\\nwhile :; do echo y; done\\n' >/bin/sh"


@pytest.mark.parametrize("script", [NO_SHELL, ENDLESS_SHELL], ids=["no shell", "endless shell"])
def test_an_agent_cannot_keep_its_sandbox(docker_service: Service, script: str):
    registry = docker_service.services.sandboxes
    run_id = f"run-{uuid.uuid4().hex[:8]}"
    released, *due = (new_sandbox(docker_service, "docker", run_id) for _ in range(4))
    for sandbox in (released, *due):
        sandbox.run(["sh", "-c", script], cwd="/", deadline=Deadline.after(30))
    for sandbox in due:
        registry.keep("docker", sandbox.id, run_id=run_id, seconds=-1)
    began = time.monotonic()

    request = {"schema": 1, "run_id": run_id, "sandbox": {"provider": "docker", "id": released.id}}
    sent = docker_service.send("sandbox.release", request)
    sweep(docker_service)

    assert docker_service.outcome(sent).result["released"] is True
    until(lambda: not registry.of_run(run_id), what="all are ended")
    assert time.monotonic() - began < 20
    provider = docker_service.services.providers.get("docker")
    assert provider.find({LABEL_RUN: run_id}, deadline=Deadline.after(30)) == []


def test_a_job_in_such_a_sandbox_leaves_it_as_was_asked(docker_service: Service):
    """The clone fails in it, in its own time; `after.release` ends it all the same."""
    run_id = f"run-{uuid.uuid4().hex[:8]}"
    sandbox = new_sandbox(docker_service, "docker", run_id)
    sandbox.run(["sh", "-c", NO_SHELL], cwd="/", deadline=Deadline.after(30))
    lent = {"provider": "docker", "id": sandbox.id}
    url = docker_service.public(f"hostile-{run_id}")

    outcome = docker_service.outcome(
        docker_service.clone(url, run_id=run_id, sandbox=lent, after={"release": True}, deadline=8.0)
    )

    assert outcome.state == "FAILURE"
    until(lambda: not exists(docker_service, sandbox), what="it is ended")


def test_what_cannot_be_ended_does_not_keep_the_others(made: Service, provider: str):
    registry = made.services.sandboxes
    run_id = f"run-{uuid.uuid4().hex[:8]}"
    for number in range(60):
        registry.keep("nowhere", f"x{number}", run_id=f"{run_id}-x", seconds=-100)
    sandbox = new_sandbox(made, provider, run_id)
    registry.keep(provider, sandbox.id, run_id=run_id, seconds=-1)

    sweep(made)

    until(lambda: not registry.of_run(run_id), what="the one that can be ended is")
    failed = registry.of_run(f"{run_id}-x")
    assert len(failed) == 60
    assert all(kept.due > time.time() + 30 for kept in failed)
    for kept in failed:
        registry.forget(kept.provider, kept.sandbox_id)


def test_one_that_is_being_ended_is_lost_to_everybody(made: Service, provider: str):
    registry = made.services.sandboxes
    run_id = f"run-{uuid.uuid4().hex[:8]}"
    sandbox = new_sandbox(made, provider, run_id)
    registry.keep(provider, sandbox.id, run_id=run_id, seconds=-1)
    while (claim := registry.claim()) is not None and claim.sandbox_id != sandbox.id:
        pass
    lent = {"provider": provider, "id": sandbox.id}

    extended = made.outcome(
        made.send("sandbox.extend", {"schema": 1, "run_id": run_id, "sandbox": lent, "seconds": 900})
    )
    cloned = made.outcome(made.clone(made.public(f"doomed-{run_id}"), run_id=run_id, sandbox=lent))

    assert (extended.payload["category"], cloned.payload["category"]) == ("sandbox_lost", "sandbox_lost")
    assert exists(made, sandbox)
    request = {"schema": 1, "run_id": run_id, "sandbox": lent}
    assert made.outcome(made.send("sandbox.release", request)).result["released"] is True


@pytest.mark.parametrize("refused", ["box", "expired"])
def test_a_refused_request_leaves_a_lent_sandbox_alone(made: Service, provider: str, refused: str):
    run_id = f"run-{uuid.uuid4().hex[:8]}"
    sandbox = new_sandbox(made, provider, run_id)
    registry = made.services.sandboxes
    registry.keep(provider, sandbox.id, run_id=run_id, seconds=600)
    before = registry.of_run(run_id)
    url = made.private(f"refused-{run_id}")
    changes = {"run_id": "another"} if refused == "box" else {"expires_at": 1.0}
    sealed = made.sealed(run_id, url, "ghs_tokenfortests0123456789", **changes)

    outcome = made.outcome(
        made.clone(
            url, run_id=run_id, sandbox={"provider": provider, "id": sandbox.id}, credential=sealed,
            after={"release": True},
        )
    )  # fmt: skip

    assert outcome.payload["category"] == ("invalid_request" if refused == "box" else "auth_denied")
    assert lives(made, sandbox, run_id)
    assert registry.of_run(run_id) == before
    sandbox.release(deadline=Deadline.after(30))
    registry.forget(provider, sandbox.id)


def test_what_is_kept_too_long_is_refused(made: Service, provider: str):
    run_id = f"run-{uuid.uuid4().hex[:8]}"
    sandbox = new_sandbox(made, provider, run_id)
    lent = {"provider": provider, "id": sandbox.id}
    url = made.public(f"long-{run_id}")
    too_long = made.services.settings.keep_max + 1

    sent = [
        made.send("sandbox.extend", {"schema": 1, "run_id": run_id, "sandbox": lent, "seconds": too_long}),
        made.clone(url, run_id=run_id, sandbox=lent, after={"keep": too_long}),
        made.clone(url, run_id=run_id, sandbox={"provider": provider, "spec": {"ttl": too_long}}),
    ]

    assert [made.outcome(one).cause for one in sent] == [
        f"invalid_request: field={field} reason=too_long" for field in ("seconds", "after_keep", "sandbox_spec_ttl")
    ]
    assert made.services.sandboxes.of_run(run_id) == []
    sandbox.release(deadline=Deadline.after(30))


def test_a_ttl_is_kept_from_the_creation_on(made: Service, provider: str):
    run_id = f"run-{uuid.uuid4().hex[:8]}"
    wanted = {"provider": provider, "spec": {"ttl": 900.0}}
    began = time.time()

    outcome = made.outcome(made.clone(made.public(f"ttl-{run_id}"), run_id=run_id, sandbox=wanted, after={"keep": 1}))

    (kept,) = made.services.sandboxes.of_run(run_id)
    assert began + 899 < kept.due < began + 960
    request = {"schema": 1, "run_id": run_id, "sandbox": outcome.result["sandbox"]}
    assert made.outcome(made.send("sandbox.release", request)).result["released"] is True
