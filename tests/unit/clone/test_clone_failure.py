"""What a clone that ended early is taken for."""

from types import SimpleNamespace

import pytest

from tasks.clone.git import Network
from tasks.clone.request import parse, repository_of
from tasks.clone.steps import CloneJob, clone
from worker.failures.classify import classify
from worker.failures.model import Category, EndedBy, OperationFailed
from worker.sandboxes.base import Completed, Layout
from worker.sandboxes.deadline import Deadline


def judged(stdout: str, stderr: str = "", **facts) -> tuple[Category, str]:
    """How the clone is judged whose script ended so."""
    facts = {"exit_code": 1, "signal": None, "ended_by": EndedBy.ITSELF} | facts
    done = Completed(stdout=stdout.encode(), stderr=stderr.encode(), **facts)
    layout = Layout(workspace="/workspace", repos="/repos", scratch="/scratch")
    sandbox = SimpleNamespace(provider="e2b", layout=layout, run=lambda *_, **__: done)
    request = parse(
        {
            "schema": 1, "run_id": "r", "sandbox": {"provider": "e2b", "spec": {}},
            "repository": {"url": "https://git.example/o/r"},
        }
    )  # fmt: skip
    job = CloneJob(repository=repository_of(request), request=request, task_id="t", network=Network())
    with pytest.raises(OperationFailed) as caught:
        clone(sandbox, job, None, Deadline.after(5), lambda *_: None)  # type: ignore[arg-type]
    match = classify(caught.value.failure)
    return match.category, match.reason


GIT_DIED = "stage clone\nprogram git\nexit 128\n"


def test_git_that_had_no_room_for_its_last_words():
    assert judged(GIT_DIED) == (Category.RESOURCE_EXHAUSTED, "disk_full")


@pytest.mark.parametrize(
    ("stderr", "expected"),
    [
        ("fatal: unable to access 'x': Could not resolve host: git.example", (Category.TRANSIENT_NETWORK, "dns")),
        ("fatal: nobody knows this one", (Category.UNKNOWN, "unknown")),
    ],
)
def test_what_git_said_decides(stderr, expected):
    assert judged(GIT_DIED, stderr) == expected


def test_who_ended_it_outranks_its_silence():
    deadline = judged(GIT_DIED, exit_code=None, signal="SIGTERM", ended_by=EndedBy.DEADLINE)
    assert deadline == (Category.TIMEOUT_AMBIGUOUS, "deadline")


def test_what_the_driver_knows_of_a_kill_is_kept():
    killed = judged("stage clone\n", exit_code=None, signal="SIGKILL", ended_by=EndedBy.UNKNOWN, reason="out_of_memory")
    assert killed == (Category.RESOURCE_EXHAUSTED, "out_of_memory")
