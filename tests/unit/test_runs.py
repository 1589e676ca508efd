"""Which runs count as failed."""

import pytest

from worker.commands.runs import failure
from worker.stores.events import Event


def run(*names: str) -> list[Event]:
    return [
        Event(str(n), float(n), name, {"cause": f"c{n}"} if name.endswith(".failed") else {})
        for n, name in enumerate(names)
    ]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ((), None),
        (("sandbox.git.started", "sandbox.git.completed"), None),
        (("sandbox.git.retrying", "sandbox.git.failed", "sandbox.released"), "c1"),
        (("sandbox.git.failed", "sandbox.git.completed"), None),
        (("workspace.copy_back.failed", "workspace.copy_back.completed"), None),
        (("sandbox.git.completed", "workspace.copy_back.failed"), "c1"),
        (("sandbox.git.failed", "workspace.copy_back.failed"), "c1"),
        (("workspace.copy_back.failed", "sandbox.git.completed"), "c0"),
    ],
)
def test_a_failure_stands_until_the_same_kind_of_job_succeeds(names: tuple[str, ...], found: str | None):
    event = failure(run(*names))
    assert (event and event.data["cause"]) == found
