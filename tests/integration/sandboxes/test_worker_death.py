"""A killed worker leaves no command running past its deadline."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.sandboxes.conftest import docker_settings, release_all
from tests.integration.sandboxes.helpers import running, soon, wait_for
from tests.rig.hosted import key_file
from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN, Spec
from worker.sandboxes.docker.provider import DockerProvider

VICTIM = Path(__file__).with_name("victim.py")
ROOT = VICTIM.parents[3]


def killed_while_running(sandbox, labels, where, image, seconds):
    argv = [sandbox.provider, where, image, sandbox.id, labels[LABEL_RUN], labels[LABEL_REQUEST], str(seconds)]
    worker = subprocess.Popen(
        [sys.executable, str(VICTIM), *argv], env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True
    )
    try:
        wait_for(lambda: running(sandbox, "sleep 301"))
    finally:
        worker.send_signal(signal.SIGKILL)
        worker.wait()


def test_local_ends_it_at_once(local_provider, labels, tmp_path):
    sandbox = local_provider.create(Spec(), labels, deadline=soon())
    killed_while_running(sandbox, labels, str(tmp_path / "sandboxes"), "none", 60)
    wait_for(lambda: not running(sandbox, "sleep 301"), 3)


@pytest.mark.docker
@pytest.mark.parametrize("shell", ["git_image", "busybox_image"])
def test_docker_ends_it_at_its_deadline(request, docker_engine, labels, shell):
    image = request.getfixturevalue(shell)
    provider = DockerProvider(docker_settings(docker_engine, image))
    sandbox = provider.create(Spec(), labels, deadline=soon())
    try:
        killed_while_running(sandbox, labels, docker_engine, image, 3)
        # Three seconds of deadline, five of slack for the worker that is no more, one for the watchdog's sleep.
        wait_for(lambda: not running(sandbox, "sleep 301"), 12)
    finally:
        release_all(provider, labels)


def test_hosted_ends_it_at_its_deadline(hosted_name, hosted_provider, hosted_double, labels):
    sandbox = hosted_provider.create(Spec(), labels, deadline=soon())
    where = hosted_double.api_url if hosted_name == "daytona" else hosted_double.url
    killed_while_running(sandbox, labels, where, str(key_file(hosted_name, hosted_double.home)), 3)
    # Three seconds of deadline and five of slack, which the launcher counts in naps.
    wait_for(lambda: not running(sandbox, "sleep 301"), 15)
