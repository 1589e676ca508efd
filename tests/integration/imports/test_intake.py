"""Honest captures are taken in whole; nothing of them is run."""

import os
from pathlib import Path

import pytest

from tests.integration.imports.workshop import LINK, Bench, Repo, Workspace, part_of, write_bundle
from worker.failures.model import Category, OperationFailed
from worker.imports.changes import changes
from worker.imports.intake import Imported
from worker.imports.limits import Limits
from worker.imports.repository import host_repository
from worker.sandboxes.deadline import Deadline


def _edit(workspace: Workspace) -> None:
    workspace.repo.write("f", "one\ntwo\n")
    workspace.repo.write("d/new", "new\n")
    (workspace.repo.path / "gone").unlink()


def refs_of(imported: Imported) -> dict[str, str]:
    lines = imported.git.ask("for-each-ref", "--format=%(refname) %(objectname)", stage="import").decode().splitlines()
    return dict(line.split(" ") for line in lines)


def test_a_change_is_taken_in_without_the_base(bench: Bench, workspace: Workspace, tmp_path: Path) -> None:
    _edit(workspace)
    part, path = workspace.capture(tmp_path / "b")
    imported = bench.take_in(part, path)
    assert refs_of(imported) == {"refs/sandferry/snapshot": part.snapshot}  # the head is the base, which is not here
    assert imported.header.prerequisites == (workspace.base,)
    assert not imported.whole
    diff = changes(imported, tmp_path / "diff.patch")
    assert (diff.added, diff.modified, diff.deleted) == (1, 1, 1)
    assert (diff.insertions, diff.deletions) == (2, 1)
    workspace.repo.git("stash", "-q", "-u")
    workspace.repo.git("apply", "--index", str(tmp_path / "diff.patch"))
    assert workspace.repo.git("write-tree") == part.tree


def test_without_old_contents_there_are_counts_and_no_patch(bench: Bench, workspace: Workspace, tmp_path: Path) -> None:
    _edit(workspace)
    part, path = workspace.capture(tmp_path / "b")
    repo, base = workspace.repo, workspace.base
    objects = repo.raw("rev-list", "--objects", part.snapshot, f"^{base}")
    objects += f"{workspace.baseline}\n{repo.git('rev-parse', base + ':d')}\n".encode()
    refs = {"refs/sandferry/snapshot": part.snapshot, "refs/sandferry/head": base}
    write_bundle(repo, path, refs, [base], objects)
    diff = changes(bench.take_in(part, path), tmp_path / "diff.patch")
    assert (diff.added, diff.modified, diff.deleted) == (1, 1, 1)
    assert (diff.insertions, diff.patch, (tmp_path / "diff.patch").exists()) == (None, None, False)


def test_a_patch_past_the_limit_is_left_out(bench: Bench, workspace: Workspace, tmp_path: Path) -> None:
    _edit(workspace)
    diff = changes(bench.take_in(*workspace.capture(tmp_path / "b"), patch=40), tmp_path / "diff.patch")
    assert (diff.added, diff.insertions, diff.patch, (tmp_path / "diff.patch").exists()) == (1, 2, None, False)


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_a_repository_that_began_in_the_sandbox(bench: Bench, tmp_path: Path, object_format: str) -> None:
    repo = Repo.init(tmp_path / "fresh", object_format)
    head = repo.commit("first", **{"a b": "1\n", "tab\there": "2\n", "nl\nx": "3\n", "grün": "4\n", 'q"q': "5\n"})
    empty = repo.git("hash-object", "-t", "tree", "/dev/null")
    workspace = Workspace(repo, head, empty)
    part, path = workspace.capture(tmp_path / "b", with_base=False, heads__main=head)
    imported = bench.take_in(part, path)
    assert imported.whole
    assert imported.paths == 5
    assert refs_of(imported) == dict(imported.header.refs)
    names = imported.git.ask("ls-tree", "-r", "-z", "--name-only", part.snapshot, stage="import").split(b"\0")
    assert names == [b"a b", "grün".encode(), b"nl\nx", b'q"q', b"tab\there", b""]
    assert changes(imported, tmp_path / "p").added == 5


def test_branches_tags_and_stashes_come_along(bench: Bench, workspace: Workspace, tmp_path: Path) -> None:
    repo = workspace.repo
    repo.git("checkout", "-q", "-b", "feature")
    feature = repo.commit("on a branch", other="x\n")
    repo.git("tag", "-a", "-m", "t", "v1")
    repo.git("checkout", "-q", "main")
    repo.write("f", "stashed\n")
    repo.git("stash", "-q")
    tag, stash = repo.git("rev-parse", "v1"), repo.git("rev-parse", "stash@{0}")
    part, path = workspace.capture(tmp_path / "b", heads__feature=feature, tags__v1=tag, stash__0=stash)
    found = refs_of(bench.take_in(part, path))
    assert found["refs/sandferry/heads/feature"] == feature
    assert found["refs/sandferry/tags/v1"] == tag
    assert found["refs/sandferry/stash/0"] == stash


def test_a_host_repository_lends_the_base(bench: Bench, workspace: Workspace, origin: Repo, tmp_path: Path) -> None:
    _edit(workspace)
    host = host_repository({"main": origin.path}, "main")
    thin = tmp_path / "thin"
    part, path = workspace.capture(tmp_path / "b")
    workspace.repo.git("update-ref", "refs/sandferry/snapshot", part.snapshot)
    workspace.repo.git("bundle", "create", "-q", str(thin), f"{workspace.base}..refs/sandferry/snapshot")
    imported = bench.take_in(part, path, host)
    assert imported.whole
    assert imported.paths == 4
    facts = part_of(thin, snapshot=part.snapshot, tree=part.tree, baseline=part.baseline, base=part.base)
    assert bench.take_in(facts, thin, host).whole  # even a thin pack is completed
    assert origin.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"


def test_a_host_that_does_not_have_the_base_lends_nothing(bench: Bench, workspace: Workspace, tmp_path: Path) -> None:
    _edit(workspace)
    other = Repo.init(tmp_path / "other")
    assert bench.take_in(*workspace.capture(tmp_path / "b"), host_repository({"x": other.path}, "x")).host is None


def test_a_part_of_the_history_that_is_missing_is_seen(
    bench: Bench, workspace: Workspace, origin: Repo, tmp_path: Path
) -> None:
    lost = workspace.repo.commit("lost", f="lost\n")
    workspace.repo.commit("kept", f="kept\n")
    part, path = workspace.capture(tmp_path / "b")
    listed = workspace.repo.raw("rev-list", "--objects", part.snapshot, f"^{lost}")
    refs = {"refs/sandferry/snapshot": part.snapshot, "refs/sandferry/head": part.head or ""}
    write_bundle(workspace.repo, path, refs, [workspace.base], listed)
    for host in (None, host_repository({"main": origin.path}, "main")):
        with pytest.raises(OperationFailed) as caught:
            bench.take_in(part, path, host)
        assert (caught.value.failure.category, caught.value.failure.reason) == (
            Category.CORRUPT_DATA,
            "bundle_prerequisites",
        )


def test_links_that_the_base_brought_are_no_offence(
    bench: Bench, workspace: Workspace, origin: Repo, tmp_path: Path
) -> None:
    (origin.path / "abs").symlink_to("/usr/bin/env")
    origin.commit("a link of the origin")
    again = Workspace.clone(origin, tmp_path / "again")
    again.repo.write("f", "changed\n")
    host = host_repository({"main": origin.path}, "main")
    assert bench.take_in(*again.capture(tmp_path / "b"), host).unsafe_links == 0
    assert bench.take_in(*again.capture(tmp_path / "c")).unsafe_links == 0
    (again.repo.path / "mine").symlink_to("/etc/passwd")
    with pytest.raises(OperationFailed) as caught:
        bench.take_in(*again.capture(tmp_path / "d"), host)
    assert caught.value.failure.reason == "unsafe_link"
    assert bench.take_in(*again.capture(tmp_path / "e"), host, links="report").unsafe_links == 1


def test_nothing_of_the_sandbox_runs_here(bench: Bench, workspace: Workspace, tmp_path: Path, monkeypatch) -> None:
    mark = tmp_path / "mark"
    repo = workspace.repo
    repo.write(".gitattributes", "* filter=evil diff=evil merge=evil\n")
    repo.write(".gitconfig", f'[core]\nfsmonitor = touch {mark}\n[filter "evil"]\nsmudge = touch {mark}\n')
    repo.write("hooks/post-checkout", f"#!/bin/sh\ntouch {mark}\n")
    evil = tmp_path / "evil.config"
    evil.write_text(
        f'[diff "evil"]\n\ttextconv = touch {mark};cat\n\tcommand = touch {mark}\n[core]\n\tpager = touch {mark}\n'
        f"\tfsmonitor = touch {mark}\n[diff]\n\texternal = touch {mark}\n"
    )
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG"):
        monkeypatch.setenv(name, str(evil))
    for name in ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH_COMMAND", "GIT_EDITOR"):
        monkeypatch.setenv(name, f"touch {mark}")
    imported = bench.take_in(*workspace.capture(tmp_path / "b"))
    assert changes(imported, tmp_path / "diff.patch").added == 3
    assert not mark.exists()


def test_a_quarantine_is_private(bench: Bench, workspace: Workspace, tmp_path: Path) -> None:
    _edit(workspace)
    imported = bench.take_in(*workspace.capture(tmp_path / "b"))
    assert imported.git.git_dir.stat().st_mode & 0o777 == 0o700


def test_a_refused_bundle_leaves_no_ref(bench: Bench, tmp_path: Path) -> None:
    repo = Repo.init(tmp_path / "r")
    link = repo.blob(b"/etc/passwd")
    with pytest.raises(OperationFailed):
        bench.take_tree(repo, repo.tree((LINK, b"l", link)), [link])
    quarantine = Repo(bench.root / "quarantine-1")
    assert quarantine.git("for-each-ref") == ""
    assert len(list((quarantine.path / "objects" / "pack").glob("*.pack"))) == 1


def test_the_deadline_ends_it(bench: Bench, workspace: Workspace, tmp_path: Path) -> None:
    _edit(workspace)
    with pytest.raises(OperationFailed) as caught:
        bench.take_in(*workspace.capture(tmp_path / "b"), seconds=0)
    assert caught.value.failure.reason == "deadline"


def test_git_past_its_limits_is_ended_and_said_to_be(bench: Bench, workspace: Workspace, tmp_path: Path) -> None:
    workspace.repo.path.joinpath("big").write_bytes(os.urandom(3_000_000))
    with pytest.raises(OperationFailed) as caught:
        bench.take_in(*workspace.capture(tmp_path / "b"), file_size=1_000_000)
    assert (caught.value.failure.category, caught.value.failure.reason) == (Category.POLICY_DENIED, "process_limit")


def test_a_deadline_ends_a_git_that_waits(bench: Bench, workspace: Workspace, tmp_path: Path) -> None:
    _edit(workspace)
    git = bench.take_in(*workspace.capture(tmp_path / "b")).git
    late = type(git)(git_dir=git.git_dir, limits=Limits(), deadline=Deadline.after(0.3))
    with pytest.raises(OperationFailed) as caught, late.started("cat-file", "--batch", stage="import", stdin=None) as c:
        c.read()
    assert caught.value.failure.reason == "deadline"
    with pytest.raises(ProcessLookupError):
        os.killpg(c._process.pid, 0)
