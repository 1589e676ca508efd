"""The same capture in a container, as its user, with whatever shell is there."""

import os
import subprocess

import pytest

from tests.integration.capture.bench import soon
from tests.integration.sandboxes.conftest import docker_settings, new_labels, release_all
from tests.rig.docker_fixture import docker_engine, git_image  # noqa: F401 - fixtures
from worker.failures.model import OperationFailed
from worker.sandboxes.base import Spec
from worker.sandboxes.docker.provider import DockerProvider
from worker.snapshots.baseline import baseline
from worker.snapshots.capture import CaptureRequest, capture, discard
from worker.snapshots.digest import bundle_digest
from worker.snapshots.format import parse_empty, parse_omitted, parse_path

pytestmark = pytest.mark.docker

PREPARE = """
set -e
export HOME=/nonexistent GIT_AUTHOR_NAME=T GIT_AUTHOR_EMAIL=t@example.invalid
export GIT_COMMITTER_NAME=T GIT_COMMITTER_EMAIL=t@example.invalid
git init -q -b main "$1" && cd "$1"
echo one >f && git add . && git commit -qm base
git rev-parse HEAD
"""
WORK = """
set -e
cd "$1"
echo two >f
printf x >"$(printf 'nl\\nx')"
mkfifo pipe
mkdir -p hollow
git init -q inner && echo y >inner/y
"""
STATE = """
cd "$1" && git hash-object .git/index && find . ! -type p ! -path '*/objects/*' -exec ls -ldi --full-time {} +
"""
AGENT = """
setsid sh -c 'echo $$ >"$1"; exec sleep 300' sh "$1" >/dev/null 2>&1 </dev/null &
until [ -s "$1" ]; do sleep 0.1; done
cat "$1"
"""


@pytest.fixture(scope="module")
def sandbox(docker_engine, git_image):  # noqa: F811
    labels = new_labels()
    provider = DockerProvider(docker_settings(docker_engine, git_image))
    yield provider.create(Spec(), labels, deadline=soon())
    release_all(provider, labels)


def sh(sandbox, script, *args):
    done = sandbox.run(["sh", "-c", script, "sh", *args], deadline=soon())
    assert done.ok, done
    return done.stdout.decode()


@pytest.fixture
def prepared(sandbox):
    """A request for a workspace with a change."""
    path = f"{sandbox.layout.workspace}/{os.urandom(4).hex()}"
    base = sh(sandbox, PREPARE, path).strip()
    store = f"{sandbox.layout.scratch}/baseline-{os.urandom(4).hex()}"
    tree = baseline(sandbox, path, store, soon())
    sh(sandbox, WORK, path)
    return CaptureRequest(path=path, key="op1", base=base, baseline=tree, store=store)


def read(sandbox, captured, name):
    return b"".join(sandbox.read(f"{captured.out_dir}/{name}", deadline=soon()))


def test_a_capture_in_a_container(sandbox, prepared, tmp_path):
    before = sh(sandbox, STATE, prepared.path)
    captured = capture(sandbox, prepared, soon())
    assert sh(sandbox, STATE, prepared.path) == before
    text = captured.text
    assert [part.kind for part in text.parts] == ["repository", "nested"]
    assert text.parts[0].base == prepared.base
    assert text.omitted == {"fifo": 1, "unborn_nested": 1}
    assert parse_empty(read(sandbox, captured, "empty.z"), text.empty) == (b"hollow",)
    assert ("fifo", b"pipe") in parse_omitted(read(sandbox, captured, "omitted.z"), text.omitted)
    for part in text.parts:
        data = read(sandbox, captured, f"part-{part.number}.bundle")
        assert (len(data), bundle_digest(len(data), [data])) == (part.size, part.digest)
    assert parse_path(read(sandbox, captured, "part-1.path"), 1) == b"inner"
    bundle = tmp_path / "nested.bundle"
    bundle.write_bytes(data)
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "r")], check=True)
    fetch = ["git", "-C", str(tmp_path / "r"), "fetch", "-q", str(bundle), "refs/sandferry/snapshot:refs/x"]
    subprocess.run(fetch, check=True)
    shown = subprocess.run(["git", "-C", str(tmp_path / "r"), "show", "refs/x:y"], capture_output=True, check=True)
    assert shown.stdout == b"y\n"
    discard(sandbox, captured, soon())
    assert sh(sandbox, 'ls -A "$1"', f"{sandbox.layout.scratch}/copy_back") == ""


def test_every_other_process_of_the_user_is_paused(sandbox, prepared):
    pid = sh(sandbox, AGENT, f"{sandbox.layout.scratch}/agent").strip()
    watch = 'mkdir -p "$1" && cd "$1" && printf \'%s\\n\' "$2" >git && chmod +x git'
    folder = f"{sandbox.layout.scratch}/bin"
    script = f"#!/bin/sh\ncase \" $* \" in *' write-tree '*) cat /proc/{pid}/stat >{folder}/seen ;; esac\n"
    sh(sandbox, watch, folder, script + 'exec /usr/bin/git "$@"')
    inner = sandbox.run

    def controlled(argv, **options):
        return inner(argv, **options | {"env": {"PATH": f"{folder}:/usr/bin:/bin"}})

    sandbox.run = controlled
    try:
        request = CaptureRequest(
            path=prepared.path,
            key="op2",
            base=prepared.base,
            baseline=prepared.baseline,
            store=prepared.store,
            pause=True,
        )
        captured = capture(sandbox, request, soon())
    finally:
        del sandbox.run
    assert captured.text.quiesce == "pause"
    assert sh(sandbox, 'cat "$1"', f"{folder}/seen").rpartition(")")[2].split()[0] == "T"
    assert sh(sandbox, 'cat "$1"', f"/proc/{pid}/stat").rpartition(")")[2].split()[0] == "S"
    discard(sandbox, captured, soon())


def test_a_failure_in_a_container(sandbox, prepared):
    request = CaptureRequest(path=f"{prepared.path}/gone", key="op3")
    with pytest.raises(OperationFailed) as caught:
        capture(sandbox, request, soon())
    assert caught.value.failure.cause == (
        "remote_workspace_capture_failed: stage=helper code=ENOENT exit=1 program=sh reason=path_invalid helper_exit=1"
    )
    assert sh(sandbox, 'ls -A "$1"', f"{sandbox.layout.scratch}/copy_back") == ""
