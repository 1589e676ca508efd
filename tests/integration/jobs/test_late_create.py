"""A sandbox that appears only after its job has failed is ended: nobody else would."""

import threading

import docker
import pytest

from tests.doubles.docker_proxy import DockerProxy
from tests.integration.sandboxes.helpers import wait_for
from tests.rig.jobs import service
from worker.demo.broker import embedded

pytestmark = pytest.mark.docker
RUN = "run-late"


class SlowEngine(DockerProxy):
    """An engine that makes no container before ``released``."""

    released = threading.Event()

    def _fault(self, line):
        if "/containers/create" in line:
            self.released.wait(60)
        return super()._fault(line)


def test_a_sandbox_that_was_made_too_late_is_ended(docker_engine, git_image, tmp_path):
    api = docker.APIClient(docker_engine)
    with (
        embedded() as url,
        SlowEngine(docker_engine) as slow,
        service(tmp_path, url, DOCKER_URL=slow.url, DOCKER_IMAGE=git_image, DOCKER_NETWORK="host") as made,
    ):

        def containers():
            return api.containers(all=True, filters={"label": f"sandferry.run={RUN}"})

        made.start_worker(concurrency=2)
        sent = made.clone(made.public("late"), provider="docker", run_id=RUN, deadline=3)
        failed = made.outcome(sent)
        assert (failed.payload["category"], containers()) == ("timeout_ambiguous", [])
        slow.released.set()
        try:
            wait_for(containers)
            assert made.services.sandboxes.all() == [], "it was never noted"
            client = made.services.client
            wait_for(lambda: client.zscore("sandferry:unsettled", sent.id))
            client.zadd("sandferry:unsettled", {sent.id: 1})  # two minutes later
            made.send("maintenance.sweep", {"schema": 1})
            wait_for(lambda: not containers())
            wait_for(lambda: client.zscore("sandferry:unsettled", sent.id) is None)
        finally:
            for left in containers():
                api.remove_container(left["Id"], force=True)
