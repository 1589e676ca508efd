"""What is checked out: the default branch, a branch, a tag, an exact commit; deep or shallow."""

from pathlib import Path

import pytest

from tests.doubles.github import status
from tests.doubles.repositories import git
from tests.integration.clone.bench import TOKEN
from worker.failures.model import Category


def test_the_default_branch_is_checked_out_whole(bench):
    commit = bench.repository(files={"README.md": b"hello\n", "src/main.py": b"print()\n"})
    done = bench.clone()
    layout = bench.sandbox.layout
    assert (done.path, done.workspace) == (f"{layout.repos}/o/r", f"{layout.workspace}/r")
    assert (done.commit, done.ref, done.adopted) == (commit, "refs/heads/main", False)
    assert Path(done.workspace).resolve() == Path(done.path)
    assert bench.git("status", "--porcelain", at=done.path) == ""
    assert bench.git("rev-parse", "HEAD^{tree}", at=done.path) == done.baseline
    assert (Path(done.path) / "src/main.py").read_bytes() == b"print()\n"
    assert done.bytes > 0
    assert bench.leftovers() == []
    assert [name for name, _ in bench.events] == ["sandbox.git.started", "sandbox.git.completed"]


@pytest.mark.parametrize("depth", [None, 1])
@pytest.mark.parametrize("kind", ["branch", "tag"])
def test_a_branch_and_a_tag_of_one_name_are_told_apart(bench, kind, depth):
    tagged = bench.repository()
    git("tag", "-a", "-m", "annotated", "v1", cwd=bench.work())
    bench.push("refs/tags/v1")
    on_branch = bench.commit(branch="v1")
    done = bench.clone(ref={kind: "v1"}, **({"depth": depth} if depth else {}))
    expected = {"branch": (on_branch, "refs/heads/v1"), "tag": (tagged, "refs/tags/v1")}
    assert (done.commit, done.ref) == expected[kind]
    assert bench.git("rev-parse", "HEAD", at=done.path) == done.commit


def test_a_tag_is_no_branch(bench):
    bench.repository()
    git("tag", "v1", cwd=bench.work())
    bench.push("refs/tags/v1")
    failure = bench.failure(ref={"branch": "v1"})
    assert (failure.stage, failure.category, failure.reason) == ("verify", Category.INVALID_REQUEST, "ref_missing")
    assert bench.leftovers() == []


def test_a_missing_branch_is_for_the_rules_to_name(bench):
    bench.repository()
    failure = bench.failure(ref={"branch": "nowhere"})
    assert (failure.stage, failure.program, failure.exit_code) == ("clone", "git", 128)
    assert "Remote branch nowhere not found" in failure.text


def test_a_missing_tag(bench):
    bench.repository()
    assert bench.failure(ref={"tag": "nowhere"}).reason == "ref_missing"


@pytest.mark.parametrize("back", [0, 2, 3])
@pytest.mark.parametrize("depth", [None, 1])
def test_an_exact_commit_is_never_the_tip_instead(bench, back, depth):
    commits = [bench.repository(), *(bench.commit(files={"n": f"{n}".encode()}) for n in range(3))]
    wanted = commits[-1 - back]
    done = bench.clone(ref={"commit": wanted}, **({"depth": depth} if depth else {}))
    assert (done.commit, done.ref) == (wanted, None)
    assert bench.git("rev-parse", "HEAD", at=done.path) == wanted
    assert bench.git("status", "--porcelain", at=done.path) == ""


def test_a_server_that_hands_out_no_ids_is_asked_for_everything(bench):
    wanted = bench.repository()
    bench.commit()
    refused = b"ERR upload-pack: not our ref"
    refusal = status(200, b"%04x%s" % (len(refused) + 4, refused), Content_Type="application/x-git-upload-pack-result")
    rule = bench.hub.fault(refusal, path="git-upload-pack$", method="POST", when="credential")
    done = bench.clone(ref={"commit": wanted}, depth=1)
    assert rule.seen > 1
    assert bench.git("rev-parse", "HEAD", at=done.path) == wanted


def test_a_commit_that_nobody_has(bench):
    bench.repository()
    failure = bench.failure(ref={"commit": "1234567890" * 4})
    assert (failure.category, failure.reason) == (Category.INVALID_REQUEST, "commit_missing")


def test_a_force_pushed_branch_is_the_new_one(bench):
    bench.repository()
    old = bench.commit(files={"removed.txt": b"k\n"})
    git("reset", "-q", "--hard", "HEAD~1", cwd=bench.work())
    new = bench.commit(files={"g": b"new\n"})
    done = bench.clone(ref={"branch": "main"})
    assert done.commit == new != old
    assert not (Path(done.path) / "removed.txt").exists()
    assert bench.git("log", "--merges", "--oneline", at=done.path) == ""


@pytest.mark.parametrize("single", [None, True])
def test_a_head_that_names_a_missing_branch_is_a_failure(bench, single):
    bench.repository()
    git("symbolic-ref", "HEAD", "refs/heads/trunk", cwd=bench.remotes / "o/r.git")
    failure = bench.failure(single_branch=single)
    assert (failure.category, failure.reason) == (Category.INVALID_REQUEST, "default_branch_missing")
    assert not Path(bench.sandbox.layout.workspace, "r").exists()


@pytest.mark.parametrize("depth", [None, 1])
def test_an_empty_repository_is_a_place_to_start(bench, depth):
    git("init", "-q", "--bare", "-b", "trunk", str(bench.remotes / "o/r.git"))
    bench.hub.grant(TOKEN, "o/r")
    done = bench.clone(**({"depth": depth} if depth else {}))
    assert (done.commit, done.ref) == (None, "refs/heads/trunk")
    assert done.baseline == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git's empty tree


@pytest.mark.parametrize(
    ("options", "commits", "branches"),
    [
        ({}, 3, ["origin/main", "origin/other"]),
        ({"depth": 1}, 1, ["origin/main"]),
        ({"depth": 1, "single_branch": False}, 1, ["origin/main", "origin/other"]),
        ({"single_branch": True}, 3, ["origin/main"]),
    ],
)
def test_depth_and_single_branch(bench, options, commits, branches):
    bench.repository()
    bench.commit(branch="other")
    bench.commit()
    done = bench.clone(**options)
    assert bench.git("rev-list", "--count", "HEAD", at=done.path) == str(commits)
    found = bench.git("for-each-ref", "--format=%(refname:short)", "refs/remotes/origin/", at=done.path).split()
    assert sorted(set(found) - {"origin/HEAD", "origin"}) == branches


@pytest.mark.parametrize("kind", ["text/plain", "text/html"])
def test_a_page_that_came_once_instead_of_the_refs_is_no_missing_branch(bench, kind):
    commit = bench.repository()
    bench.hub.fault(status(200, b"<html>be right back</html>", kind), path="info/refs", times=1)
    failure = bench.failure()
    assert (failure.stage, failure.reason) == ("verify", "malformed_answer")
    assert failure.category is Category.TRANSIENT_SERVER
    assert bench.clone().commit == commit


def test_a_page_that_came_once_is_no_missing_tag(bench):
    bench.repository()
    bench.push("HEAD:refs/tags/v1")
    bench.hub.fault(status(200, b"be right back"), path="info/refs", times=1)
    failure = bench.failure(ref={"tag": "v1"})
    assert (failure.category, failure.reason) == (Category.TRANSIENT_SERVER, "malformed_answer")
    assert bench.clone(ref={"tag": "v1"}).ref == "refs/tags/v1"
