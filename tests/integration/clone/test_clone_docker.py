"""The same clone in a container: git, the file system and the environment are the container's."""

import pytest

from tests.doubles.github import FaultyGitHub
from tests.doubles.thief import Thief
from tests.integration.clone.bench import RUN, TOKEN, Bench
from tests.integration.clone.test_clone_secrecy import add_gitlink
from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN, Spec
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.docker.provider import DockerProvider
from worker.sandboxes.settings import DockerSettings

pytestmark = pytest.mark.docker


@pytest.fixture
def docker_bench(tmp_path, docker_engine, git_image):
    provider = DockerProvider(DockerSettings(url=docker_engine, image=git_image, network="host"))
    labels = {LABEL_RUN: RUN, LABEL_REQUEST: tmp_path.name}
    env = {"GIT_TRACE": "1", "GIT_TRACE_CURL": "1", "GIT_TRACE_REDACT": "0"}
    sandbox = provider.create(Spec(env=env), labels, deadline=Deadline.after(60))
    remotes = tmp_path / "remotes"
    remotes.mkdir()
    with FaultyGitHub(remotes, app_id="1", public_key="none") as hub:
        yield Bench(hub=hub, remotes=remotes, sandbox=sandbox)
    sandbox.release(deadline=Deadline.after(60))


def inside(bench: Bench, script: str) -> str:
    done = bench.sandbox.run(["sh", "-c", script], deadline=Deadline.after(60))
    assert done.ok, done.stderr
    return done.stdout.decode().strip()


def test_a_clone_and_its_adoption(docker_bench):
    commit = docker_bench.repository(files={"README.md": b"hello\n", "d/f": b"1"})
    first, again = docker_bench.clone(task="a"), docker_bench.clone(task="b")
    assert (first.commit, first.adopted, first.path) == (commit, False, "/repos/o/r")
    assert (again.commit, again.adopted, again.baseline) == (commit, True, first.baseline)
    assert inside(docker_bench, "cat /workspace/r/README.md") == "hello"
    assert inside(docker_bench, "git -C /workspace/r rev-parse HEAD 'HEAD^{tree}' 2>/dev/null").split() == [
        commit,
        first.baseline,
    ]
    assert inside(docker_bench, "ls -A /repos/o") == "r"


def test_the_token_stays_nowhere_in_the_container(docker_bench):
    docker_bench.repository()
    docker_bench.clone()
    found = docker_bench.sandbox.run(
        ["sh", "-c", 'grep -rl -- "$(cat)" /repos /workspace /var/lib/sandferry /root /tmp; exit 0'],
        stdin=TOKEN.encode(),
        deadline=Deadline.after(60),
    )
    assert found.ok
    assert found.stdout == b""


def test_a_trace_in_the_image_prints_nothing(docker_bench):
    docker_bench.repository()
    failure = docker_bench.failure(ref={"branch": "nowhere"})
    assert "Remote branch nowhere not found" in failure.text
    assert "trace" not in failure.text
    assert TOKEN not in failure.text


def test_lfs(docker_bench):
    pointer = docker_bench.hub.add_lfs_object(b"data\n" * 500)
    docker_bench.repository(files={".gitattributes": b"*.bin filter=lfs -text\n", "a.bin": pointer})
    done = docker_bench.clone(lfs=True)
    assert inside(docker_bench, "wc -c </workspace/r/a.bin") == "2500"
    assert inside(docker_bench, "git -C /workspace/r status --porcelain 2>/dev/null") == ""
    assert inside(docker_bench, "git -C /workspace/r rev-parse 'HEAD^{tree}' 2>/dev/null") == done.baseline


@pytest.mark.parametrize("way", ["submodule", "redirect", "insteadof", "lfs"])
def test_the_four_thefts(docker_bench, way):
    with Thief() as thief:
        files = {"f": b"1"}
        if way == "submodule":
            files[".gitmodules"] = f'[submodule "m"]\n\tpath = m\n\turl = {thief.url}/o/m.git\n'.encode()
        if way == "lfs":
            pointer = docker_bench.hub.add_lfs_object(b"data")
            files |= {".gitattributes": b"*.bin filter=lfs -text\n", "a.bin": pointer}
            files[".lfsconfig"] = f"[lfs]\n\turl = {thief.url}/lfs\n".encode()
        docker_bench.repository(files=files)
        if way == "submodule":
            add_gitlink(docker_bench, "m")
        if way == "redirect":
            docker_bench.hub.fault(redirect(f"{thief.url}/o/r.git/info/refs?service=git-upload-pack"), times=None)
        if way == "insteadof":
            config = f'[url "{thief.url}/"]\n\tinsteadOf = {docker_bench.hub.url}/\n'
            docker_bench.sandbox.write("/root/.gitconfig", config.encode(), deadline=Deadline.after(30))
            docker_bench.clone()
            assert thief.offers == []
        else:
            docker_bench.failure(submodules=way == "submodule", lfs=way == "lfs")
            assert thief.offers != []
        assert thief.loot == []


def redirect(location: str):
    def act(handler) -> bool:
        b"".join(handler.body())
        handler.answer(302, Location=location)
        return True

    return act
