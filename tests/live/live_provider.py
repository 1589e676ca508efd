"""The driver against the real service. Settings come from ``SANDFERRY_*``; every sandbox is ended again.

make live-e2b        make live-daytona
"""

import hashlib
import os
import time
import uuid

import pytest

from worker.failures.model import EndedBy, InvalidRequest, OperationFailed
from worker.retrying.services import Services
from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN, Spec
from worker.sandboxes.deadline import Deadline
from worker.settings import Settings


def soon(seconds=120.0):
    return Deadline.after(seconds)


@pytest.fixture(scope="module")
def provider(request):
    return Services(Settings()).providers.get(request.config.getoption("--provider"))


@pytest.fixture(scope="module")
def labels():
    return {LABEL_RUN: f"live-{uuid.uuid4()}", LABEL_REQUEST: "live é/&="}


@pytest.fixture(scope="module")
def sandbox(provider, labels):
    yield provider.create(Spec(ttl=600, env={"MADE_WITH": "this"}), labels, deadline=soon())
    for found in provider.find({LABEL_RUN: labels[LABEL_RUN]}, deadline=soon()):
        found.release(deadline=soon())


def test_find_and_connect(provider, sandbox, labels):
    assert [found.id for found in provider.find(labels, deadline=soon())] == [sandbox.id]
    assert provider.connect(sandbox.id, labels, deadline=soon()).layout == sandbox.layout
    with pytest.raises(InvalidRequest, match="foreign_sandbox"):
        provider.connect(sandbox.id, {**labels, LABEL_RUN: "another"}, deadline=soon())


def test_creating_again_gives_the_same(provider, sandbox, labels):
    assert provider.create(Spec(ttl=600), labels, deadline=soon()).id == sandbox.id


def test_commands(sandbox):
    done = sandbox.run(["sh", "-c", "echo $MADE_WITH; echo err >&2; exit 7"], deadline=soon())
    assert (done.exit_code, done.stdout, done.stderr) == (7, b"this\n", b"err\n")
    every = bytes(range(256)) * 1000
    assert sandbox.run(["cat"], stdin=every, deadline=soon()).stdout == every
    assert sandbox.run(["git", "--version"], deadline=soon()).stdout.startswith(b"git version ")


def test_a_deadline_ends_the_group(sandbox):
    done = sandbox.run(["sh", "-c", "sleep 501 & sleep 501"], deadline=Deadline.after(3))
    assert done.ended_by is EndedBy.DEADLINE
    assert b"sleep 501" not in sandbox.run(
        ["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"], deadline=soon()
    ).stdout.replace(b"cat /proc", b"")


def test_a_command_longer_than_a_proxy_waits(sandbox):
    done = sandbox.run(["sh", "-c", "sleep 150; echo done"], deadline=soon(240))
    assert done.stdout == b"done\n"


def test_files(sandbox):
    data = os.urandom(5_000_000)
    path = f"{sandbox.layout.workspace}/f"
    sandbox.write(path, data, deadline=soon())
    assert hashlib.sha256(b"".join(sandbox.read(path, deadline=soon()))).digest() == hashlib.sha256(data).digest()
    with pytest.raises(FileNotFoundError):
        list(sandbox.read(f"{path}-absent", deadline=soon()))
    with pytest.raises(IsADirectoryError):
        list(sandbox.read(sandbox.layout.workspace, deadline=soon()))


def test_a_lease_is_extended_and_never_shortened(provider, sandbox, labels):
    sandbox.keep_alive(1200, deadline=soon())
    until = sandbox.lease_until(deadline=soon())
    assert 1150 < until - time.time() < 1300
    sandbox.keep_alive(5, deadline=soon())
    provider.connect(sandbox.id, labels, deadline=soon())
    assert sandbox.lease_until(deadline=soon()) >= until - 5


def test_a_clone_of_a_public_repository(sandbox):
    argv = ["git", "clone", "-q", "--depth", "1", "https://github.com/octocat/Hello-World", "hello"]
    assert sandbox.run(argv, deadline=soon()).ok


def test_release(provider, sandbox, labels):
    for _ in range(2):
        sandbox.release(deadline=soon())
    with pytest.raises(OperationFailed) as failed:
        sandbox.run(["true"], deadline=soon())
    assert failed.value.failure.reason == "sandbox_lost"
