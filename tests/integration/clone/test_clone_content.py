"""LFS, submodules, filters, owners, and what the sandbox lacks."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from tests.doubles.github import status as status_answer
from tests.doubles.repositories import git
from tests.integration.clone.bench import TOKEN, local_sandbox
from tests.integration.clone.test_clone_secrecy import add_gitlink
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


def test_lfs_files_of_a_submodule_arrive(bench):
    data = os.urandom(3000)
    inner = bench.repository("o/m", LFS_FILES | {"sub/b.bin": bench.hub.add_lfs_object(data)})
    bench.hub.public.add("o/m")
    bench.repository(files={".gitmodules": b'[submodule "m"]\n\tpath = m\n\turl = ../m.git\n'})
    add_gitlink(bench, "m", inner)
    done = bench.clone(lfs=True, submodules=True)
    assert (Path(done.path) / "m/sub/b.bin").read_bytes() == data
    assert bench.git("status", "--porcelain", at=done.path) == ""


def test_a_repository_without_lfs_files_may_ask_for_them(bench):
    git("init", "-q", "--bare", "-b", "main", str(bench.remotes / "o/empty.git"))
    bench.hub.grant(TOKEN, "o/empty")
    assert bench.clone("o/empty", lfs=True).commit is None
    commit = bench.repository()
    assert bench.clone(lfs=True).commit == commit


@pytest.mark.parametrize("where", ["top", "submodule"])
def test_a_pointer_that_stays_though_git_lfs_is_content_is_a_failure(bench, tmp_path, where):
    """As a git-lfs does that finds no filter configured, or no driver of its own version."""
    folder = Path(path_without(tmp_path, "git-lfs"))
    (folder / "git-lfs").write_text(
        f'#!/bin/sh\ncase "$1 $PWD" in "pull "*{"m" if where == "submodule" else "r"}) ;; '
        f'*) exec {shutil.which("git-lfs")} "$@" ;; esac\n'
    )
    (folder / "git-lfs").chmod(stat.S_IRWXU)
    bench.sandbox = local_sandbox(tmp_path / "s", {"PATH": str(folder)}, request="r2")
    lfs_files = LFS_FILES | {"a b.bin": bench.hub.add_lfs_object(b"data"), "x/y.bin": bench.hub.add_lfs_object(b"more")}
    inner = bench.repository("o/m", lfs_files)
    bench.hub.public.add("o/m")
    bench.repository(files=lfs_files | {".gitmodules": b'[submodule "m"]\n\tpath = m\n\turl = ../m.git\n'})
    add_gitlink(bench, "m", inner)
    failure = bench.failure(lfs=True, submodules=True)
    assert (failure.stage, failure.category) == ("lfs", Category.CORRUPT_DATA)
    assert failure.reason == "checkout_incomplete"


@pytest.mark.parametrize("key", ["fetchexclude", "fetchinclude"])
def test_what_the_repository_excludes_stays_a_pointer(bench, key):
    config = f"[lfs]\n\t{key} = {'big' if key == 'fetchexclude' else 'small'}\n".encode()
    pointer = bench.hub.add_lfs_object(b"big")
    files = {"big/a.bin": pointer, "small/b.bin": bench.hub.add_lfs_object(b"small"), ".lfsconfig": config}
    bench.repository(files=LFS_FILES | files)
    done = Path(bench.clone(lfs=True).path)
    assert ((done / "big/a.bin").read_bytes(), (done / "small/b.bin").read_bytes()) == (pointer, b"small")


def test_a_pointer_that_no_attribute_makes_one_is_a_file(bench):
    pointer = bench.hub.add_lfs_object(b"data")
    bench.repository(files={"tests/sample.bin": pointer})
    assert (Path(bench.clone(lfs=True).path) / "tests/sample.bin").is_file()


@pytest.mark.parametrize("body", [b"garbage", b""])
@pytest.mark.parametrize("ref", [{}, {"tag": "v1"}], ids=str)
def test_an_answer_that_is_no_git_is_no_empty_repository(bench, body, ref):
    """git reads any text/plain as the list of refs of a server that speaks no protocol, here an empty one."""
    bench.repository()
    bench.hub.fault(status_answer(200, body), path="info/refs", times=None)
    failure = bench.failure(ref=ref)
    assert (failure.category, failure.reason) == (Category.INVALID_REQUEST, "not_a_repository")
    assert not Path(bench.sandbox.layout.workspace, "r").exists()


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
