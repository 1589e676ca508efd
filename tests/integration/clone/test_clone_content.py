"""LFS, submodules, filters, owners, and what the sandbox lacks."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from tests.doubles.github import status as status_answer
from tests.doubles.repositories import git
from tests.integration.clone.bench import local_sandbox
from worker.failures.model import Category

LFS_FILES = {".gitattributes": b"*.bin filter=lfs diff=lfs merge=lfs -text\n"}


def path_without(tmp_path: Path, *missing: str) -> str:
    """A PATH with every program of this machine but some."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for source in reversed(("/usr/local/bin", "/usr/bin", "/bin")):
        for program in Path(source).glob("*"):
            link = folder / program.name
            if program.name not in missing and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


def test_lfs_files_arrive_when_asked_for(bench):
    data = os.urandom(5000)
    bench.repository(files=LFS_FILES | {"a.bin": bench.hub.add_lfs_object(data)})
    done = bench.clone(lfs=True)
    assert (Path(done.path) / "a.bin").read_bytes() == data
    assert bench.git("status", "--porcelain", at=done.path) == ""
    assert bench.git("rev-parse", "HEAD^{tree}", at=done.path) == done.baseline


def test_lfs_files_are_pointers_when_not(bench):
    pointer = bench.hub.add_lfs_object(b"data")
    bench.repository(files=LFS_FILES | {"a.bin": pointer})
    done = bench.clone()
    assert (Path(done.path) / "a.bin").read_bytes() == pointer


def test_a_sandbox_without_git_lfs_is_told_before_anything_is_fetched(bench, tmp_path):
    bench.sandbox = local_sandbox(tmp_path / "s", {"PATH": path_without(tmp_path, "git-lfs")}, request="r2")
    bench.repository(files=LFS_FILES)
    failure = bench.failure(lfs=True)
    assert (failure.stage, failure.category, failure.reason) == ("version", Category.INVALID_REQUEST, "lfs_missing")
    assert bench.hub.counts["git_requests"] == 0
    assert bench.clone().adopted is False


def test_a_sandbox_without_git_is_told(bench, tmp_path):
    bench.sandbox = local_sandbox(tmp_path / "s", {"PATH": path_without(tmp_path, "git")}, request="r2")
    bench.repository()
    assert bench.failure().reason == "program_missing"


@pytest.mark.parametrize(("version", "reason"), [("2.36.6", "git_too_old"), ("1.9.1", "git_too_old"), ("3.0.0", None)])
def test_the_version_of_git_is_checked(bench, tmp_path, version, reason):
    folder = path_without(tmp_path, "git")
    fake = Path(folder) / "git"
    fake.write_text(
        f'#!/bin/sh\n[ "$1" = version ] && echo "git version {version} (Apple Git-1)" || exec /usr/bin/git "$@"\n'
    )
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    bench.sandbox = local_sandbox(tmp_path / "s", {"PATH": folder}, request="r2")
    bench.repository()
    if reason is None:
        assert bench.clone().adopted is False
    else:
        assert bench.failure().reason == reason


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_every_shell_will_do(bench, tmp_path, shell):
    folder = path_without(
        tmp_path, "sh", *(("mv", "ln", "ls", "sed", "du", "cp", "find", "tr") if shell == "busybox" else ())
    )
    applets = ("sh", "mv", "ln", "ls", "sed", "du", "cp", "find", "tr") if shell == "busybox" else ("sh",)
    for applet in applets:
        (Path(folder) / applet).symlink_to(shutil.which(shell) or shell)
    bench.sandbox = local_sandbox(tmp_path / "s", {"PATH": folder}, request="r2")
    commit = bench.repository()
    first, again = bench.clone(task="a"), bench.clone(task="b")
    assert (first.commit, first.adopted, again.adopted) == (commit, False, True)
    assert bench.git("rev-parse", "HEAD^{tree}", at=first.path) == first.baseline == again.baseline


def test_a_whole_clone_needs_no_network_later(bench):
    bench.repository()
    commit = bench.commit()
    done = bench.clone()
    shutil.rmtree(bench.remotes / "o")
    assert "?" not in bench.git("rev-list", "--objects", "--missing=print", commit, at=done.path)
    assert not (Path(done.path) / ".git/objects/info/alternates").exists()
    git("fsck", "--full", cwd=Path(done.path))


@pytest.mark.parametrize("wanted", ["default", "commit"])
def test_a_filter_is_passed_on_without_a_credential(bench, wanted):
    bench.repository(files={"big": b"x" * 5000})
    commit = bench.commit(files={"big": b"y"})
    git("config", "uploadpack.allowFilter", "true", cwd=bench.remotes / "o/r.git")
    bench.hub.public.add("o/r")
    ref = {"commit": commit} if wanted == "commit" else {}
    done = bench.clone(token=None, filter="blob:limit=1k", ref=ref)
    missing = bench.git("rev-list", "--objects", "--all", "--missing=print", at=done.path)
    assert [line for line in missing.split("\n") if line.startswith("?")] != []
    assert bench.git("rev-parse", "HEAD^{tree}", at=done.path) == done.baseline


def test_a_checkout_of_another_user_is_adopted_without_a_wildcard(bench):
    bench.repository()
    first = bench.clone()
    for path in (Path(first.path), *Path(first.path).rglob("*")):
        os.lchown(path, 65534, 65534)
    assert bench.clone().adopted
    assert not (bench.home / ".gitconfig").exists()


def test_a_checkout_can_be_built_upon(bench):
    bench.repository()
    done = bench.clone()
    (Path(done.path) / ".git/info/exclude").write_text("*.tmp\n")
    (Path(done.path) / "x.tmp").write_text("")
    assert bench.git("status", "--porcelain", at=done.path) == ""
    assert bench.git("rev-parse", "--abbrev-ref", "HEAD@{upstream}", at=done.path) == "origin/main"


def test_nested_groups_are_nested_directories(bench):
    """The double knows no groups; it is told to send them to a repository of its own."""
    commit = bench.repository()
    there = f"{bench.hub.git_url('o', 'r')}/info/refs?service=git-upload-pack"
    bench.hub.fault(status_answer(301, Location=there), path="^/a/b/c/r/info/refs", times=None)
    done = bench.clone(url=f"{bench.hub.url}/a/b/c/r")
    assert done.path == f"{bench.sandbox.layout.repos}/a/b/c/r"
    assert bench.git("rev-parse", "HEAD", at=done.workspace) == commit
    assert bench.clone(url=f"{bench.hub.url}/a/b/c/r").adopted
