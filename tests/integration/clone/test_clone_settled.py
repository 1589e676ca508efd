"""A job that is over for good leaves nothing of its attempts in a sandbox that was lent to it."""

import uuid
from pathlib import Path

import pytest

from tasks.clone.layout import STAGING_PREFIX, attempt_key
from tasks.clone.repository import parse_url
from tests.rig.jobs import service
from worker.demo.broker import embedded
from worker.sandboxes.base import LABEL_RUN
from worker.sandboxes.deadline import Deadline


@pytest.fixture
def made(tmp_path):
    with embedded() as broker, service(tmp_path, broker) as made:
        made.start_worker(concurrency=1)
        yield made


def test_the_staging_of_a_dead_attempt_is_gone_after_the_final_failure(made):
    first = made.outcome(made.clone(made.public("app"), run_id="run-1", after={"keep": 600})).result
    sandbox = made.services.providers.get("local").connect(
        first["sandbox"]["id"], {LABEL_RUN: "run-1"}, deadline=Deadline.after(30)
    )
    owner, url, task_id = Path(sandbox.layout.repos, "acme"), made.public("other"), uuid.uuid4().hex
    key = attempt_key(run_id="run-1", task_id=task_id, repository=parse_url(url, http_hosts=[url.split("/")[2]]))
    dead, others = owner / f"{STAGING_PREFIX}{key}-dead", owner / f"{STAGING_PREFIX}0-others"

    def die(handler) -> bool:
        """Stands for an attempt that is killed while the last one runs."""
        (dead / "other").mkdir(parents=True)
        others.mkdir()
        return False

    made.hub.fault(die, path="^/acme/other.git/info/refs")
    request = {
        "schema": 1,
        "run_id": "run-1",
        "sandbox": first["sandbox"],
        "repository": {"url": url},
        "ref": {"branch": "nowhere"},
    }
    failed = made.outcome(made.send("sandbox.clone", request, task_id=task_id))
    assert "reason=ref_missing" in failed.payload["cause"]
    assert Deadline.after(20).wait(20, lambda: not dead.exists())
    assert {path.name for path in owner.iterdir()} == {"app", others.name}
