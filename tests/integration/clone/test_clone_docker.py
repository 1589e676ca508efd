"""The same clone in a container: git, the file system and the environment are the container's."""

import pytest

from tests.doubles.github import FaultyGitHub
from tests.doubles.thief import Thief
from tests.integration.clone.bench import RUN, TOKEN, Bench
from tests.integration.clone.test_clone_secrecy import add_gitlink
from tests.integration.clone.test_clone_surroundings import basic
from worker.failures.model import Category
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


def test_what_a_home_in_the_container_says_is_not_heard(docker_bench):
    docker_bench.repository()
    netrc = b"machine 127.0.0.1 login evil password evil-credential\n"
    docker_bench.sandbox.write("/root/.netrc", netrc, deadline=Deadline.after(30))
    docker_bench.clone()
    assert {offer for offer in docker_bench.hub.authorizations() if offer} == {basic(TOKEN)}


def test_a_branch_with_an_at_sign(docker_bench):
    commit = docker_bench.repository()
    docker_bench.push("main:refs/heads/user@host/feature")
    done = docker_bench.clone(ref={"branch": "user@host/feature"})
    assert (done.commit, done.ref) == (commit, "refs/heads/user@host/feature")


def test_a_checkout_is_nobodys_owner(docker_bench):
    docker_bench.repository()
    docker_bench.clone()
    failure = docker_bench.failure(url=f"{docker_bench.hub.url}/o/r/newdir/lib")
    assert (failure.category, failure.reason) == (Category.POLICY_DENIED, "owner_directory")
    assert inside(docker_bench, "git -C /repos/o/r status --porcelain 2>/dev/null; ls /repos/o/r") == "README.md"
    assert docker_bench.failure(url=f"{docker_bench.hub.url}/p/q/lib").stage == "clone"
    assert inside(docker_bench, "ls -A /repos") == "o"


@pytest.mark.parametrize("what", ["echo >/workspace", "ln -s nowhere /workspace", ":"])
def test_a_workspace_that_is_gone_is_made_and_one_that_is_something_else_is_a_bad_layout(docker_bench, what):
    commit = docker_bench.repository()
    done = docker_bench.sandbox.run(["sh", "-c", f"rm -rf /workspace; {what}"], cwd="/", deadline=Deadline.after(60))
    assert done.ok, done.stderr
    if what == ":":
        assert docker_bench.clone().commit == commit
    else:
        failure = docker_bench.failure()
        assert (failure.category, failure.reason) == (Category.INVALID_REQUEST, "layout_invalid")


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
