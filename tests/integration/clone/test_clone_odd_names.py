"""Names that mean something elsewhere: in a URL, in a revision, to a shell, to a file system."""

from pathlib import Path

import pytest

from tests.doubles.repositories import git
from tests.integration.clone.bench import TOKEN
from worker.failures.model import Category
from worker.sandboxes.deadline import Deadline
from worker.snapshots.baseline import baseline

BRANCHES = [
    *("release@1.0", "user@host/feature", "renovate/@types/node", "http@example.com", "@"),
    *("config", "HEAD", "head", "refs/heads/main", "origin/main", "tags/v1", "main/x"),
    *("ünï/cöde", "分支", "🚀", "e\u0301", "quote'\"`", "$(id);&|", "%2e%2e", "{a,b}", "#1!", "a=b", "+x"),
    *("a" * 200, "deadbeef", "1234567", "none", "yes"),
]


@pytest.mark.parametrize("name", BRANCHES)
def test_a_branch_of_any_name(bench, name):
    bench.repository()
    commit = bench.commit(branch="x")
    # `git push` itself reads some of these names as something else.
    git("update-ref", "-d", "refs/heads/main", cwd=bench.remotes / "o/r.git")
    git("update-ref", f"refs/heads/{name}", commit, cwd=bench.remotes / "o/r.git")
    done = bench.clone(ref={"branch": name})
    assert (done.commit, done.ref) == (commit, f"refs/heads/{name}")
    assert bench.git("rev-parse", "HEAD", at=done.path) == commit
    assert bench.git("status", "--porcelain", at=done.path) == ""


@pytest.mark.parametrize("depth", [None, 1])
@pytest.mark.parametrize("name", ["release@1.0", "HEAD", "config", "-x", "user@pass", "1" * 40])
def test_a_default_branch_of_any_name(bench, name, depth):
    bench.repository()
    commit = bench.commit(branch="x")
    bare = bench.remotes / "o/r.git"
    git("update-ref", f"refs/heads/{name}", commit, cwd=bare)
    (bare / "HEAD").write_text(f"ref: refs/heads/{name}\n")
    done = bench.clone(**({"depth": depth} if depth else {}))
    assert (done.commit, done.ref) == (commit, f"refs/heads/{name}")


@pytest.mark.parametrize("depth", [None, 1])
def test_a_branch_named_like_a_commit_is_that_branch_and_the_commit_is_the_commit(bench, depth):
    first = bench.repository()
    second = bench.commit()
    bare = bench.remotes / "o/r.git"
    git("update-ref", f"refs/heads/{first}", second, cwd=bare)
    git("update-ref", f"refs/tags/{first}", second, cwd=bare)
    shallow = {"depth": depth} if depth else {}
    found = {}
    for kind in ("branch", "tag", "commit"):
        done = bench.clone(ref={kind: first}, **shallow)
        found[kind] = (done.commit, done.ref, bench.git("rev-parse", "HEAD^{commit}", at=done.path))
        (Path(done.path)).rename(bench.root / kind)
        Path(done.workspace).unlink()
    assert found == {
        "branch": (second, f"refs/heads/{first}", second),
        "tag": (second, f"refs/tags/{first}", second),
        "commit": (first, None, first),
    }


@pytest.mark.parametrize("name", ["v1", "1.0@beta", "HEAD", "main", "分支"])
def test_a_tag_of_any_name(bench, name):
    commit = bench.repository()
    bench.commit()
    git("update-ref", f"refs/tags/{name}", commit, cwd=bench.remotes / "o/r.git")
    done = bench.clone(ref={"tag": name})
    assert (done.commit, done.ref) == (commit, f"refs/tags/{name}")


@pytest.mark.parametrize("of", ["HEAD^{tree}", "HEAD:README.md"])
@pytest.mark.parametrize("depth", [None, 1])
def test_a_tag_of_no_commit_is_said_to_be_one(bench, of, depth):
    bench.repository()
    git("tag", "-a", "-m", "odd", "odd", of, cwd=bench.work())
    bench.push("refs/tags/odd")
    failure = bench.failure(ref={"tag": "odd"}, **({"depth": depth} if depth else {}))
    assert (failure.category, failure.reason) == (Category.INVALID_REQUEST, "not_a_commit")


def test_a_tag_of_a_tag_is_its_commit(bench):
    commit = bench.repository()
    git("tag", "-a", "-m", "in", "inner", cwd=bench.work())
    git("tag", "-a", "-m", "out", "outer", "inner", cwd=bench.work())
    bench.push("refs/tags/outer")
    assert bench.clone(ref={"tag": "outer"}).commit == commit


@pytest.mark.parametrize("length", [40, 64])
@pytest.mark.parametrize("format_", ["sha1", "sha256"])
def test_a_commit_id_of_either_length_that_is_not_there(bench, format_, length):
    bare = bench.remotes / "o/r.git"
    git("init", "-q", "--bare", f"--object-format={format_}", "-b", "main", str(bare))
    work = bench.work()
    git("init", "-q", f"--object-format={format_}", "-b", "main", str(work))
    git("commit", "-qm", "1", "--allow-empty", cwd=work)
    bench.push("main")
    bench.hub.grant(TOKEN, "o/r")
    failure = bench.failure(ref={"commit": "1" * length})
    assert (failure.category, failure.reason) == (Category.INVALID_REQUEST, "commit_missing")
    commit = git("rev-parse", "HEAD", cwd=work).stdout.strip()
    assert bench.clone(ref={"commit": commit}).commit == commit


@pytest.mark.parametrize("of", ["tree", "blob", "tag"])
def test_an_id_of_something_else_is_no_commit(bench, of):
    bench.repository()
    git("tag", "-a", "-m", "t", "v1", cwd=bench.work())
    bench.push("refs/tags/v1")
    name = {"tree": "HEAD^{tree}", "blob": "HEAD:README.md", "tag": "v1"}[of]
    oid = git("rev-parse", name, cwd=bench.work()).stdout.strip()
    assert bench.failure(ref={"commit": oid}).reason == "commit_missing"


@pytest.mark.parametrize("single", [None, True])
def test_a_detached_head_is_followed(bench, single):
    commit = bench.repository()
    bench.commit()
    (bench.remotes / "o/r.git/HEAD").write_text(f"{commit}\n")
    done = bench.clone(single_branch=single)
    assert (done.commit, done.ref) == (commit, None)
    assert bench.git("rev-parse", "HEAD", at=done.path) == commit


def test_a_repository_of_tags_alone(bench):
    commit = bench.repository()
    bench.push("main:refs/tags/v1")
    git("update-ref", "-d", "refs/heads/main", cwd=bench.remotes / "o/r.git")
    assert bench.failure().reason == "default_branch_missing"
    assert bench.clone(ref={"tag": "v1"}).commit == commit
    assert bench.clone(task="2", ref={"tag": "v1"}).adopted


def test_files_of_any_name_arrive_and_are_the_baseline(bench):
    apart_by_case = {"README.md": b"1\n", "readme.md": b"2\n", "a/B": b"3\n", "A/b": b"4\n"}
    names = [
        *("back\\slash", "-dash", "--help/-x", "line\nend", "tab\t", 'q"', " ", "ü", "u\u0308", ":(top)", "@"),
        *("aux", "con.txt", "a:b", "trailing.", "git~1x", "x" * 255, "/".join(["d" * 100] * 30)),
    ]
    files = apart_by_case | dict.fromkeys(names, b"\n")
    bench.repository(files=files)
    done = bench.clone()
    assert {name: (Path(done.path) / name).read_bytes() for name in files} == files
    assert bench.git("status", "--porcelain", at=done.path) == ""
    assert bench.git("rev-parse", "HEAD^{tree}", at=done.path) == done.baseline


def test_links_and_modes_arrive_as_they_are(bench):
    bench.repository()
    work = bench.work()
    links = {"dangling": "nowhere", "out": "/etc/passwd", "up": "../../..", "loop": "loop"}
    for name, target in links.items():
        (work / name).symlink_to(target)
    (work / "run").write_text("#!/bin/sh\n")
    (work / "run").chmod(0o777)
    bench.commit(files={"plain": b"x"})
    done = bench.clone()
    there = Path(done.path)
    assert {name: str((there / name).readlink()) for name in links} == links
    assert ((there / "run").stat().st_mode & 0o777, (there / "plain").stat().st_mode & 0o777) == (0o755, 0o644)
    assert bench.git("rev-parse", "HEAD^{tree}", at=done.path) == done.baseline


def test_line_endings_by_attributes_are_no_change(bench):
    """The disk differs from the commit; what it would be committed as does not."""
    bench.repository(
        files={".gitattributes": b"*.bat text eol=crlf\n*.id ident\n", "a.bat": b"1\n2\n", "b.id": b"$Id$\n"}
    )
    done = bench.clone()
    there = Path(done.path)
    assert (there / "a.bat").read_bytes() == b"1\r\n2\r\n"
    assert bench.git("status", "--porcelain", at=done.path) == ""
    (there / "a.bat").touch()
    again = baseline(bench.sandbox, done.path, f"{bench.sandbox.layout.scratch}/again", Deadline.after(60))
    assert again == done.baseline == bench.git("rev-parse", "HEAD^{tree}", at=done.path)
