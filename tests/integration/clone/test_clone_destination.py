"""What lies at the destination already, and what an attempt leaves behind."""

import os
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tasks.clone.steps import clone
from tests.doubles.github import delay
from tests.integration.clone.bench import TOKEN, credential, local_sandbox
from worker.failures.model import Cancelled, Category, EndedBy, OperationFailed
from worker.sandboxes.deadline import Deadline


def repos(bench) -> Path:
    return Path(bench.sandbox.layout.repos)


def taken(bench, **options) -> None:
    failure = bench.failure(**options)
    assert (failure.category, failure.reason) == (Category.INVALID_REQUEST, "destination_taken")
    assert bench.leftovers() == []


def test_two_clones_of_one_run_at_once_are_one_checkout(bench):
    commit = bench.repository(files={f"f{n}": os.urandom(2000) for n in range(300)})

    def attempt(task: str):
        return bench.clone(task=task)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(attempt, [f"task-{n}" for n in range(4)]))
    assert {result.commit for result in results} == {commit}
    assert len({result.baseline for result in results}) == 1
    assert sorted(result.adopted for result in results) == [False, True, True, True]
    assert names(repos(bench) / "o") == ["r"]
    assert not (repos(bench) / "o/r/r").exists()


def test_a_finished_clone_is_adopted_with_its_first_baseline(bench):
    bench.repository()
    first = bench.clone()
    (Path(first.path) / "README.md").write_text("the agent was here\n")
    again = bench.clone()
    assert again.adopted
    assert (again.commit, again.ref, again.baseline, again.path) == (
        first.commit,
        first.ref,
        first.baseline,
        first.path,
    )
    assert (Path(first.path) / "README.md").read_text() == "the agent was here\n"


@pytest.mark.parametrize("kind", ["default", "branch", "tag", "commit"])
def test_every_kind_of_ref_is_adopted(bench, kind):
    commit = bench.repository()
    bench.push("main:refs/tags/v1")
    ref = {"default": {}, "branch": {"branch": "main"}, "tag": {"tag": "v1"}, "commit": {"commit": commit}}[kind]
    assert [bench.clone(ref=ref).adopted, bench.clone(ref=ref).adopted] == [False, True]


def test_an_empty_checkout_is_adopted(bench):
    subprocess.run(["git", "init", "-q", "--bare", str(bench.remotes / "o/r.git")], check=True)
    bench.hub.grant(TOKEN, "o/r")
    assert [bench.clone().adopted, bench.clone().adopted] == [False, True]


def test_another_commit_than_the_one_there_is_not_adopted(bench):
    bench.repository()
    first = bench.clone()
    bench.commit()
    taken(bench)
    assert bench.git("rev-parse", "HEAD", at=first.path) == first.commit


ASKED = [
    *({}, {"ref": {"branch": "main"}}, {"ref": {"branch": "dev"}}, {"ref": {"tag": "v1"}}, {"ref": {"tag": "dev"}}),
    *({"depth": 1}, {"depth": 2}, {"depth": 1, "single_branch": False}, {"single_branch": True}),
    *({"lfs": True}, {"submodules": True}, {"filter": "blob:none"}, {"ref": {"commit": "it"}}),
]


@pytest.mark.parametrize("first", ASKED, ids=str)
def test_a_checkout_of_the_same_commit_that_was_asked_for_otherwise_is_not_adopted(bench, first):
    commit = bench.repository()
    bench.hub.public.add("o/r")
    bench.push("main:refs/heads/dev", "main:refs/tags/v1", "main:refs/tags/dev")

    def request(asked):
        return {**asked, "ref": {"commit": commit}} if "commit" in asked.get("ref", {}) else asked

    done = bench.clone(token=None, **request(first))
    for other in ASKED:
        if other == first:
            again = bench.clone(token=None, **request(other))
            assert (again.adopted, again.ref, again.baseline) == (True, done.ref, done.baseline)
        else:
            taken(bench, token=None, **request(other))


def test_a_depth_of_the_default_is_the_same_request_however_it_is_spelled(bench):
    bench.repository()
    bench.clone(depth=3)
    assert bench.clone(depth=3, single_branch=True).adopted


def test_another_repository_of_the_same_path_is_not_adopted(bench):
    bench.repository()
    first = bench.clone()
    taken(bench, url=bench.hub.git_url("o", "r").replace("127.0.0.1", "localhost"))
    assert Path(first.path).is_dir()


def identity(path):
    """All of ``lstat`` but when it was last read: a look is no touch."""
    about = path.lstat()
    return about.st_ino, about.st_mode, about.st_nlink, about.st_size, about.st_mtime_ns, about.st_ctime_ns


@pytest.mark.parametrize("what", ["file", "directory", "empty", "symlink", "dangling", "repository"])
def test_what_is_not_ours_is_not_touched(bench, tmp_path, what):
    bench.repository()
    there = repos(bench) / "o/r"
    there.parent.mkdir()
    match what:
        case "file":
            there.write_text("mine")
        case "directory":
            (there / "x").mkdir(parents=True)
        case "empty":
            there.mkdir()
        case "symlink":
            there.symlink_to(tmp_path)
        case "dangling":
            there.symlink_to(tmp_path / "nowhere")
        case "repository":
            subprocess.run(["git", "clone", "-q", str(bench.remotes / "o/r.git"), str(there)], check=True)
    before = identity(there)
    taken(bench)
    assert identity(there) == before
    assert not Path(bench.sandbox.layout.workspace, "r").exists()
    assert bench.hub.counts["git_requests"] == 0


@pytest.mark.parametrize("what", ["file", "directory", "elsewhere"])
def test_a_taken_workspace_name_is_not_touched(bench, tmp_path, what):
    bench.repository()
    link = Path(bench.sandbox.layout.workspace, "r")
    match what:
        case "file":
            link.write_text("mine")
        case "directory":
            link.mkdir()
        case "elsewhere":
            link.symlink_to(tmp_path)
    taken(bench)
    assert names(repos(bench)) == []
    assert not (link / "r").exists()


def test_a_symlinked_owner_takes_the_clone_nowhere(bench, tmp_path):
    bench.repository()
    target = tmp_path / "hacked"
    target.mkdir()
    (repos(bench) / "o").symlink_to(target)
    failure = bench.failure()
    assert (failure.stage, failure.category, failure.reason) == ("layout", Category.POLICY_DENIED, "symlink")
    assert names(target) == []


def test_an_owner_that_becomes_a_link_during_the_clone_takes_it_nowhere(bench, tmp_path):
    bench.repository()
    target = tmp_path / "hacked"
    target.mkdir()
    owner = repos(bench) / "o"

    def swap(handler) -> bool:
        owner.rename(owner.with_name("moved"))
        owner.symlink_to(target)
        return False

    bench.hub.fault(swap, path="git-upload-pack$", when="credential")
    bench.failure()
    assert names(target) == []
    assert names(owner.with_name("moved")) == []


def test_a_clone_that_loses_the_race_to_a_stranger_leaves_him_alone(bench):
    bench.repository()
    there = repos(bench) / "o/r"

    def arrive(handler) -> bool:
        (there / "his").mkdir(parents=True)
        return False

    bench.hub.fault(arrive, path="git-upload-pack$", when="credential")
    taken(bench)
    assert names(there) == ["his"]


@pytest.mark.parametrize("victim", ["git", "script"])
def test_a_killed_attempt_leaves_only_its_staging_and_the_next_succeeds(bench, victim):
    commit = bench.repository()
    bench.hub.fault(delay(30), path="git-upload-pack$", when="credential")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(bench.failure)
        pid = wait_for(lambda: process_of(bench, victim))
        kill_tree(pid) if victim == "script" else os.kill(pid, 9)
        failure = first.result(timeout=20)
    assert (failure.signal, failure.exit_code) == ("SIGKILL", None)
    assert len(bench.leftovers()) == (1 if victim == "script" else 0)
    assert not (repos(bench) / "o/r").exists()
    done = bench.clone()
    assert (done.commit, done.adopted) == (commit, False)
    assert bench.leftovers() == []


def test_the_staging_of_another_task_is_left_alone(bench):
    bench.repository()
    other = repos(bench) / "o/.sandferry-staging-0123456789abcdef-00/r"
    other.mkdir(parents=True)
    bench.clone()
    assert other.is_dir()


def test_a_deadline_ends_the_clone_and_leaves_nothing(bench):
    bench.repository()
    bench.hub.fault(delay(30), path="git-upload-pack$", when="credential")
    failure = bench.failure(seconds=1.5)
    assert (failure.stage, failure.ended_by) == ("clone", EndedBy.DEADLINE)
    assert bench.leftovers() == []


def test_a_cancel_ends_the_clone(bench):
    bench.repository()
    bench.hub.fault(delay(30), path="git-upload-pack$", when="credential")
    deadline = Deadline.after(60, threading.Event())
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(clone, bench.sandbox, bench.job(), credential(TOKEN), deadline, lambda *_: None)
        wait_for(lambda: process_of(bench, "git"))
        deadline.cancel.set()
        with pytest.raises(Cancelled):
            running.result(timeout=20)
    assert bench.leftovers() == []


def test_a_full_disk_is_said_and_left_empty(bench, tmp_path):
    bench.repository(files={f"f{n}": os.urandom(100_000) for n in range(30)})
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(small)], check=True)
    try:
        bench.sandbox = local_sandbox(small, request="r2")
        failure = bench.failure()
        assert failure.stage == "clone"
        assert "No space left on device" in failure.text
        assert bench.leftovers() == []
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_a_removed_checkout_is_cloned_anew_with_a_new_baseline(bench):
    bench.repository()
    first = bench.clone()
    shutil.rmtree(first.path)
    commit = bench.commit()
    second = bench.clone()
    assert (second.commit, second.adopted) == (commit, False)
    assert second.baseline != first.baseline


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def wait_for(condition):
    """What the condition says once it says something."""
    found = []

    def look() -> bool:
        found.append(condition())
        return bool(found[-1])

    assert Deadline.after(20).wait(20, look)
    return found[-1]


def process_of(bench, victim: str) -> int | None:
    """The git that fetches, or the shell that runs the script, once git is at work."""
    name = {"git": b"git\0clone\0", "script": b"sandferry-clone\0"}[victim]
    git_runs = victim == "git" or process_of(bench, "git")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            argv, stat = (process / "cmdline").read_bytes(), (process / "stat").read_text()
        except OSError:
            continue
        ours = str(bench.root).encode() in argv and (name in argv)
        if ours and git_runs and (victim == "git" or stat.split()[4] == stat.split()[0]):
            return int(process.name)
    return None


def kill_tree(pid: int) -> None:
    """SIGKILL for the script's whole process group: nothing of it can tidy up."""
    os.killpg(pid, 9)


def test_failures_hold_no_text_in_their_string(bench):
    bench.repository()
    with pytest.raises(OperationFailed) as caught:
        bench.clone(ref={"branch": "nowhere"})
    assert str(caught.value) == "clone/clone"
    assert "nowhere" not in repr(caught.value.failure)
