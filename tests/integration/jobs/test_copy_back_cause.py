"""Why a copy-back failed: in the first record, in known words, and what git said is seen nowhere."""

import itertools
import shutil

import pytest

from tests.rig.jobs import Service
from tests.rig.waiting import until
from worker.sandboxes.base import LABEL_RUN
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.environment import SEARCH_PATH

PRIVATE = "/home/acme/secret-project/.git/objects"
SIGNED = "ghs_0123456789abcdefghijklmnopqrstuvwxyzAB"
CAUSE = (
    "remote_workspace_operation_failed: operation=capture exit=1; "
    "remote_workspace_capture_failed: stage=archive exit=128 program=git helper_exit=1"
)
DOCKER_BIN = "/opt/controlled"
WAIT = 60
_numbers = itertools.count(1)

STATE = """
find . ! -type d ! -path './.git/objects/*' -exec ls -ld --full-time {} + | sort
find . -type f ! -path './.git/objects/*' -exec cat {} + | git hash-object --stdin
git for-each-ref; ls .git
"""


@pytest.fixture
def workspace(made: Service, provider: str):
    """A cloned workspace with work in it, and a way to say what its git does at one subcommand."""
    name = f"cause-{next(_numbers)}"
    run_id = f"run-{name}"
    folder = DOCKER_BIN if provider == "docker" else str(made.home / f"bin-{name}")
    spec = {"env": {"PATH": f"{folder}:{SEARCH_PATH}"}}
    url = made.public(name, {"README.md": b"hello\n"})
    sandbox = {"provider": provider, "spec": spec}
    cloned = made.outcome(made.clone(url, run_id=run_id, sandbox=sandbox)).result
    made.in_sandbox(cloned, run_id, "printf 'two\\n' > README.md; printf 'new\\n' > new.txt; git add new.txt")
    before = made.in_sandbox(cloned, run_id, STATE)

    def control(at: str, does: str) -> None:
        git = "/usr/bin/git" if provider == "docker" else shutil.which("git")
        script = f'#!/bin/sh\ncase " $* " in *" {at} "*) {does} ;; esac\nexec {git} "$@"\n'
        made.in_sandbox(
            cloned, run_id, f"mkdir -p {folder}; cat >{folder}/git <<'END'\n{script}END\nchmod 755 {folder}/git"
        )

    yield cloned, run_id, control
    made.in_sandbox(cloned, run_id, f"rm -f {folder}/git")
    assert made.in_sandbox(cloned, run_id, STATE) == before


def nowhere(made: Service, run_id: str, text: str) -> bool:
    """Neither in the broker, the records, the results, the events, nor in a log."""
    return text not in made.everything() and text not in repr(made.events(run_id))


def leftovers(made: Service, cloned: dict, run_id: str) -> str:
    provider = made.services.providers.get(cloned["sandbox"]["provider"])
    sandbox = provider.connect(cloned["sandbox"]["id"], {LABEL_RUN: run_id}, deadline=Deadline.after(30))
    return made.in_sandbox(cloned, run_id, f"ls -A {sandbox.layout.scratch}/copy_back")


@pytest.mark.parametrize("at", ["pack-objects", "add"])
def test_the_reference_case(made: Service, workspace, at: str):
    cloned, run_id, control = workspace
    control(at, f"echo 'fatal: cannot read {PRIVATE}: {SIGNED}' >&2; exit 128")

    outcome = made.outcome(made.copy_back(cloned, run_id), timeout=WAIT)

    assert (outcome.state, outcome.cause) == ("FAILURE", CAUSE)
    (operation, *_) = made.services.operations.of_run(run_id)
    assert operation.attempts[0] == (1, CAUSE), "the first record says it"
    assert operation.stderr == f"{CAUSE}\n" * len(operation.attempts)
    assert len(operation.attempts) == 2, "an unknown failure of a step that may be repeated is met again once"
    assert operation.metadata == {"workspace_sync": {"cause": CAUSE}}
    assert operation.status == "retry_exhausted"
    assert operation.command == f"sandferry recover {run_id}"
    assert nowhere(made, run_id, PRIVATE)
    assert nowhere(made, run_id, "secret-project")
    assert nowhere(made, run_id, SIGNED)
    tails = made.services.diagnostics.read(operation.task_id)
    assert [attempt for attempt, _ in tails] == [1, 2]
    assert all(PRIVATE in tail and SIGNED not in tail for _, tail in tails), "for operators: redacted, not empty"
    retrying = [data for name, data in made.events(run_id) if name == "workspace.copy_back.retrying"]
    assert [data["stage"] for data in retrying] == ["capture"]
    assert leftovers(made, cloned, run_id) == ""


def test_the_cause_is_in_the_record_while_the_next_attempt_waits(made: Service, workspace):
    cloned, run_id, control = workspace
    control("commit-tree", f"echo 'fatal: cannot read {PRIVATE}' >&2; exit 128")
    sent = made.copy_back(cloned, run_id)

    record = until(lambda: [one for one in made.services.operations.of_run(run_id) if one.attempts], what="a cause")[0]
    control("no-such-subcommand", "exit 1")

    assert record.status == "running"
    assert record.attempts == ((1, CAUSE),)
    assert made.outcome(sent, timeout=WAIT).result["outcome"] == "succeeded"
    (operation,) = made.services.operations.of_run(run_id)
    assert (operation.status, operation.attempts) == ("succeeded", ((1, CAUSE),))


def test_a_signal_that_ends_git_is_named(made: Service, workspace):
    cloned, run_id, control = workspace
    control("pack-objects", "kill -9 $$")

    outcome = made.outcome(made.copy_back(cloned, run_id), timeout=WAIT)

    nested = "remote_workspace_capture_failed: stage=archive signal=SIGKILL program=git helper_exit=1"
    assert outcome.cause == f"remote_workspace_operation_failed: operation=capture exit=1; {nested}"


def test_a_signal_that_ends_the_helper_is_named(made: Service, workspace):
    cloned, run_id, control = workspace
    control("pack-objects", "kill -TERM 0; exec sleep 5")

    outcome = made.outcome(made.copy_back(cloned, run_id), timeout=WAIT)

    assert outcome.cause == "remote_workspace_operation_failed: operation=capture signal=SIGTERM"


@pytest.mark.parametrize(
    "forged",
    [
        "remote_workspace_capture_failed: stage=archive exit=128 program=git helper_exit=1 name=/etc/passwd",
        f"remote_workspace_capture_failed: stage=archive program={SIGNED} helper_exit=1",
        "note: remote_workspace_capture_failed: stage=archive exit=128 program=git helper_exit=1",
    ],
)
def test_what_an_agents_git_says_is_never_the_cause(made: Service, workspace, forged: str):
    cloned, run_id, control = workspace
    control("pack-objects", f"echo '{forged}' >&2; exit 3")

    outcome = made.outcome(made.copy_back(cloned, run_id), timeout=WAIT)

    assert outcome.cause == CAUSE.replace("exit=128", "exit=3")
    assert nowhere(made, run_id, SIGNED)


def test_a_disk_full_is_met_again_once_after_half_a_minute(made: Service, workspace):
    cloned, run_id, control = workspace
    control("pack-objects", "echo 'fatal: write error: No space left on device' >&2; exit 128")
    sent = made.copy_back(cloned, run_id)

    def retrying() -> list[tuple[str, int]]:
        found = [data for name, data in made.events(run_id) if name == "workspace.copy_back.retrying"]
        return [(data["reason"], data["delay_ms"]) for data in found]

    assert until(retrying, what="a retry") == [("disk_full", 30_000)]
    (operation,) = until(
        lambda: [one for one in made.services.operations.of_run(run_id) if one.attempts], what="its cause"
    )
    assert operation.attempts == ((1, "workspace_disk_full: stage=capture exit=1 reason=disk_full"),)
    assert not sent.ready()
    made.services.attempts.cancel(run_id)


def test_an_index_lock_of_the_agent_is_no_obstacle(made: Service, workspace):
    cloned, run_id, _ = workspace
    made.in_sandbox(cloned, run_id, ": > .git/index.lock")

    outcome = made.outcome(made.copy_back(cloned, run_id), timeout=WAIT)
    made.in_sandbox(cloned, run_id, "rm .git/index.lock")

    assert outcome.result["outcome"] == "succeeded"
    assert outcome.result["files"] == {"added": 1, "modified": 1, "deleted": 0}
