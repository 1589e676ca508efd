"""The owner's directory: never inside a checkout, and gone again if the clone fails."""

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tasks.clone.layout import STAGING_PREFIX
from tasks.clone.steps import sweep
from tests.doubles.github import status
from tests.rig import hosted
from worker.failures.model import Category
from worker.sandboxes.deadline import Deadline


def tree(bench) -> set[str]:
    """All that lies below the directory of checkouts, but for what is in a .git."""
    root = Path(bench.sandbox.layout.repos)
    return {str(path.relative_to(root)) for path in root.rglob("*") if ".git" not in path.parts}


def refused(bench, url: str) -> None:
    before, asked = tree(bench), bench.hub.counts["git_requests"]
    failure = bench.failure(url=f"{bench.hub.url}/{url}")
    assert (failure.stage, failure.category, failure.reason) == ("layout", Category.POLICY_DENIED, "owner_directory")
    assert (tree(bench), bench.hub.counts["git_requests"]) == (before, asked)


@pytest.mark.parametrize("below", ["o/r/lib", "o/r/newdir/lib", "o/r/src/lib", "o/r/.github/a/b/lib"])
def test_a_checkout_is_nobodys_owner(bench, below):
    bench.repository(files={"src/main.py": b""})
    done = bench.clone()
    refused(bench, below)
    assert bench.git("status", "--porcelain", at=done.path) == ""


def test_neither_is_one_whose_git_directory_is_gone(bench):
    bench.repository()
    done = bench.clone()
    shutil.rmtree(Path(done.path) / ".git")
    refused(bench, "o/r/newdir/lib")


@pytest.mark.parametrize("kind", ["directory", "file", "dangling"])
def test_neither_is_somebody_elses(bench, kind):
    there = Path(bench.sandbox.layout.repos, "o/r")
    there.mkdir(parents=True)
    match kind:
        case "directory":
            subprocess.run(["git", "init", "-q", str(there)], check=True)
        case "file":
            (there / ".git").write_text("gitdir: ../elsewhere\n")
        case "dangling":
            (there / ".git").symlink_to("nowhere")
    refused(bench, "o/r/newdir/lib")


def test_neither_is_a_file(bench):
    Path(bench.sandbox.layout.repos, "o").write_text("mine")
    refused(bench, "o/r")


def test_a_directory_that_was_a_checkout_once_may_be_one(bench):
    """Its record is that of another inode."""
    bench.repository()
    done = bench.clone()
    Path(done.path + "x").mkdir()  # while the other is there: a freed inode may be given out again
    shutil.rmtree(done.path)
    Path(done.path + "x").rename(done.path)
    failure = bench.failure(url=f"{bench.hub.url}/o/r/lib")
    assert failure.stage == "clone"


@pytest.mark.parametrize(("there", "left"), [([], set()), (["a"], {"a"}), (["a/b", "a/x"], {"a", "a/b", "a/x"})])
def test_a_failed_clone_takes_the_directories_it_made_and_no_others(bench, there, left):
    for path in there:
        Path(bench.sandbox.layout.repos, path).mkdir(parents=True)
    assert bench.failure(url=f"{bench.hub.url}/a/b/c/r").stage == "clone"
    assert tree(bench) == left


def test_a_failed_clone_leaves_what_others_have_put_there(bench):
    def arrive(handler) -> bool:
        Path(bench.sandbox.layout.repos, "a/b/his").write_text("his")
        return False

    bench.hub.fault(arrive, path="info/refs")
    bench.failure(url=f"{bench.hub.url}/a/b/c/r")
    assert tree(bench) == {"a", "a/b", "a/b/his"}


def test_clones_that_fail_beside_one_that_succeeds_do_it_no_harm(bench):
    bench.repository()
    bench.hub.fault(status(404), path="^/o/gone", times=None)
    with ThreadPoolExecutor(4) as pool:
        failing = [pool.submit(bench.failure, url=f"{bench.hub.url}/o/gone{n}", task=f"f{n}") for n in range(9)]
        good = pool.submit(bench.clone)
        assert good.result().adopted is False
        assert {one.result().stage for one in failing} == {"clone"}
    assert bench.leftovers() == []


def test_a_sweep_removes_what_the_dead_attempts_of_its_task_left(bench, tmp_path):
    job = bench.job()
    owner = Path(bench.sandbox.layout.repos, "o")
    for name in (f"{STAGING_PREFIX}{job.key}-1", f"{STAGING_PREFIX}{job.key}-2", f"{STAGING_PREFIX}other-1", "r"):
        (owner / name / "x").mkdir(parents=True)
    (owner / f"{STAGING_PREFIX}{job.key}-3").symlink_to(tmp_path)
    sweep(bench.sandbox, job, Deadline.after(30))
    left = {f"{STAGING_PREFIX}{job.key}-3", f"{STAGING_PREFIX}other-1", "r"}
    assert {path.name for path in owner.iterdir()} == left


def test_a_sweep_follows_no_link(bench, tmp_path):
    job = bench.job()
    mine = tmp_path / f"mine/{STAGING_PREFIX}{job.key}-1"
    mine.mkdir(parents=True)
    Path(bench.sandbox.layout.repos, "o").symlink_to(mine.parent)
    sweep(bench.sandbox, job, Deadline.after(30))
    assert mine.is_dir()


@pytest.mark.parametrize("root", ["workspace", "repos", "scratch"])
@pytest.mark.parametrize("what", ["file", "dangling"])
def test_a_root_that_is_no_directory_is_a_bad_layout(bench, root, what):
    path = Path(getattr(bench.sandbox.layout, root))
    shutil.rmtree(path)
    path.write_text("") if what == "file" else path.symlink_to("nowhere")
    failure = bench.failure()
    assert (failure.category, failure.reason) == (Category.INVALID_REQUEST, "layout_invalid")
    # A hosted driver cannot run anything without its scratch, and so says it first.
    assert failure.stage == ("run" if root == "scratch" and bench.sandbox.provider in hosted.NAMES else "layout")
