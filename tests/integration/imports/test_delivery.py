"""Into a host repository: new refs, and a branch that only moves when nothing is lost."""

import subprocess
import threading
from pathlib import Path

import pytest

from tests.integration.imports.workshop import Bench, Repo, Workspace, worktree_tree
from worker.failures.model import Category, InvalidRequest, OperationFailed
from worker.imports import branches, delivery
from worker.imports.branches import Moved, move_branch
from worker.imports.delivery import Delivered, deliver_refs
from worker.imports.repository import HostRepository, host_repository


@pytest.fixture
def host(origin: Repo, tmp_path: Path) -> Repo:
    """A bare mirror of the origin, whose hooks must never run."""
    path = tmp_path / "host.git"
    subprocess.run(["git", "clone", "-q", "--mirror", origin.path, path], check=True)
    for hook in ("reference-transaction", "post-update", "update", "pre-receive"):
        (path / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {tmp_path}/hook-ran\nexit 1\n")
        (path / "hooks" / hook).chmod(0o755)
    return Repo(path)


@pytest.fixture
def place(host: Repo) -> HostRepository:
    return host_repository({"main": host.path}, "main")


def meanwhile(host: Repo, *args: str) -> None:
    """Somebody's git in the host, without its hooks."""
    host.git("-c", "core.hooksPath=/dev/null", *args)


def follow(host: Repo, origin: Repo) -> None:
    """Somebody moves the host's branch, as its own hooks would not let us."""
    meanwhile(host, "fetch", "-q", str(origin.path), "+main:main")


def bring(
    bench: Bench, workspace: Workspace, place: HostRepository, branch: str | None = "main", run: str = "run-1"
) -> tuple[Delivered, Moved | None]:
    part, path = workspace.capture(bench.root / f"capture-{workspace.rounds}-{run}")
    imported = bench.take_in(part, path, place)
    delivered = deliver_refs(place, [imported], run)
    return delivered, move_branch(place, imported, run, branch) if branch else None


def test_refs_of_a_run(bench: Bench, workspace: Workspace, host: Repo, place: HostRepository, tmp_path: Path) -> None:
    workspace.repo.write("f", "two\n")
    delivered, _ = bring(bench, workspace, place, None)
    assert delivered.round == 1
    assert sorted(delivered.refs) == ["refs/sandferry/run-1/1/head", "refs/sandferry/run-1/1/snapshot"]
    assert host.git("show", "refs/sandferry/run-1/1/snapshot:f") == "two"
    assert host.git("rev-parse", "main") == workspace.base
    assert host.git("fsck", "--strict", "--connectivity-only") == ""
    assert not (tmp_path / "hook-ran").exists()


def test_the_same_parts_again_find_their_round(bench: Bench, workspace: Workspace, place: HostRepository) -> None:
    workspace.repo.write("f", "two\n")
    imported = bench.take_in(*workspace.capture(bench.root / "c"), place)
    first, again = (deliver_refs(place, [imported], "run-1") for _ in range(2))
    assert first == again


def test_uncommitted_work_is_one_commit_on_the_branch(
    bench: Bench, workspace: Workspace, host: Repo, place: HostRepository, tmp_path: Path
) -> None:
    workspace.repo.write("f", "two\n")
    _, moved = bring(bench, workspace, place)
    assert moved is not None
    assert (moved.state, moved.old, moved.new) == ("merged", workspace.base, host.git("rev-parse", "main"))
    assert host.git("rev-list", "--count", "main") == "2"
    assert host.git("show", "main:f") == "two"
    assert not (tmp_path / "hook-ran").exists()


def test_committed_work_keeps_its_ids(bench: Bench, workspace: Workspace, host: Repo, place: HostRepository) -> None:
    mine = workspace.repo.commit("agent", f="two\n")
    _, moved = bring(bench, workspace, place)
    assert moved == Moved(state="merged", old=workspace.base, new=mine)
    assert host.git("rev-parse", "main") == mine


def test_the_branch_went_on_meanwhile(
    bench: Bench, workspace: Workspace, origin: Repo, host: Repo, place: HostRepository
) -> None:
    theirs = origin.commit("theirs", **{"d/e": "changed\n"})
    follow(host, origin)
    mine = workspace.repo.commit("agent", f="two\n")
    bring(bench, workspace, place)
    assert host.git("show", "-s", "--format=%P", "main").split() == [theirs, mine]
    assert (host.git("show", "main:f"), host.git("show", "main:d/e")) == ("two", "changed")
    assert host.git("fsck", "--strict", "--no-dangling") == ""


def test_a_conflict_changes_nothing_and_names_the_paths(
    bench: Bench, workspace: Workspace, origin: Repo, host: Repo, place: HostRepository
) -> None:
    theirs = origin.commit("theirs", f="theirs\n", **{"tab\there": "theirs\n"})
    follow(host, origin)
    workspace.repo.write("f", "mine\n")
    workspace.repo.write("tab\there", "mine\n")
    workspace.repo.write("fine", "mine\n")
    delivered, moved = bring(bench, workspace, place)
    assert moved == Moved(state="conflict", old=theirs, new=None, conflicts=(b"f", b"tab\there"))
    assert host.git("rev-parse", "main") == theirs
    refs = host.git("for-each-ref", "--format=%(refname)", "refs/sandferry").splitlines()
    assert refs == sorted(delivered.refs)  # kept for a later try, and no mark of a merge


def test_a_second_copy_back_builds_on_the_first(
    bench: Bench, workspace: Workspace, origin: Repo, host: Repo, place: HostRepository
) -> None:
    workspace.repo.write("a", "a\n")
    workspace.repo.write("f", "two\n")
    bring(bench, workspace, place)
    host_side = Repo(origin.path.parent / "user")
    subprocess.run(["git", "clone", "-q", host.path, host_side.path], check=True)
    host_side.commit("a user goes on", user="u\n")
    host_side.git(
        "push", "-q", "origin", "main", "--no-verify", "--receive-pack", "git -c core.hooksPath= receive-pack"
    )
    workspace.repo.write("f", "one\n")  # taken back: round 2 must undo what round 1 brought
    workspace.repo.write("b", "b\n")
    delivered, moved = bring(bench, workspace, place)
    assert delivered.round == 2
    assert moved is not None
    assert moved.state == "merged"
    assert host.git("ls-tree", "-r", "--name-only", "main").split() == ["a", "b", "d/e", "f", "gone", "keep", "user"]
    assert host.git("show", "main:f") == "one"
    assert host.git("diff-tree", "-r", "--name-only", "main^", "main").split() == ["b", "f"]


def test_nothing_new_leaves_the_branch(bench: Bench, workspace: Workspace, host: Repo, place: HostRepository) -> None:
    workspace.repo.write("f", "two\n")
    bring(bench, workspace, place)
    before = host.git("rev-parse", "main")
    _, moved = bring(bench, workspace, place)
    assert moved == Moved(state="unchanged", old=before, new=before)
    assert host.git("rev-parse", "main") == before


def test_noise_of_the_checkout_is_not_merged(
    bench: Bench, workspace: Workspace, host: Repo, place: HostRepository
) -> None:
    """Line ends that the clone itself changed are in baseline and snapshot; the change is what is between."""
    workspace.repo.write("keep", workspace.repo.path.joinpath("keep").read_text().replace("\n", "\r\n"))
    workspace.baseline = workspace.repo.git("rev-parse", "HEAD^{tree}")
    workspace.repo.git("add", "-A")
    workspace.baseline = workspace.repo.git("write-tree")
    workspace.repo.write("f", "two\n")
    noise = workspace.repo.commit_of(workspace.baseline)
    part, path = workspace.capture(bench.root / "c", baseline=noise)
    imported = bench.take_in(part, path, place)
    deliver_refs(place, [imported], "run-1")
    move_branch(place, imported, "run-1", "main")
    assert host.git("diff-tree", "-r", "--name-only", workspace.base, "main").split() == ["f"]


def test_a_new_branch(bench: Bench, workspace: Workspace, host: Repo, place: HostRepository) -> None:
    mine = workspace.repo.commit("agent", f="two\n")
    _, moved = bring(bench, workspace, place, "agents/run-1")
    assert moved == Moved(state="created", old=None, new=mine)
    assert host.git("rev-parse", "agents/run-1") == mine


def test_a_new_branch_is_without_the_noise_of_the_checkout(
    bench: Bench, workspace: Workspace, host: Repo, place: HostRepository
) -> None:
    keep = workspace.repo.path.joinpath("keep").read_text()
    workspace.repo.write("keep", keep.replace("\n", "\r\n"))
    workspace.baseline = worktree_tree(workspace.repo)
    noise = workspace.repo.commit_of(workspace.baseline)
    workspace.repo.write("f", "two\n")
    part, path = workspace.capture(bench.root / "c", baseline=noise)
    imported = bench.take_in(part, path, place)
    deliver_refs(place, [imported], "run-1")
    moved = move_branch(place, imported, "run-1", "fresh")
    assert (moved.state, moved.new) == ("created", host.git("rev-parse", "fresh"))
    assert host.git("diff-tree", "-r", "--name-only", workspace.base, "fresh").split() == ["f"]
    assert host.git("rev-parse", "fresh^") == workspace.base
    workspace.repo.write("f", "three\n")
    part, path = workspace.capture(bench.root / "c2", baseline=noise)
    imported = bench.take_in(part, path, place)
    deliver_refs(place, [imported], "run-1")
    assert move_branch(place, imported, "run-1", "fresh").state == "merged"
    assert (host.git("show", "fresh:f"), host.git("show", "fresh:keep")) == ("three", keep.strip())


@pytest.mark.parametrize("there", ["agents", "agents/run-1/x"])
def test_a_branch_whose_name_cannot_be_beside_another(
    bench: Bench, workspace: Workspace, host: Repo, place: HostRepository, there: str
) -> None:
    meanwhile(host, "branch", there, "main")
    workspace.repo.write("f", "two\n")
    delivered, moved = bring(bench, workspace, place, "agents/run-1")
    assert moved == Moved(state="name_taken", old=None, new=None)
    assert host.git("show", "refs/sandferry/run-1/1/snapshot:f") == "two"
    assert delivered.round == 1


def test_a_run_may_go_into_a_branch_below_one_that_is_gone(
    bench: Bench, workspace: Workspace, host: Repo, place: HostRepository
) -> None:
    workspace.repo.write("f", "two\n")
    bring(bench, workspace, place, "work")
    meanwhile(host, "branch", "-D", "work")
    workspace.repo.write("g", "new\n")
    _, moved = bring(bench, workspace, place, "work/v2")
    assert moved is not None
    assert (moved.state, host.git("show", "work/v2:g")) == ("created", "new")


def test_a_branch_that_is_another_ones_name(
    bench: Bench, workspace: Workspace, host: Repo, place: HostRepository, tmp_path: Path
) -> None:
    meanwhile(host, "branch", "trunk", "main")
    meanwhile(host, "symbolic-ref", "refs/heads/alias", "refs/heads/trunk")
    workspace.repo.write("f", "two\n")
    _, moved = bring(bench, workspace, place, "alias")
    assert moved is not None
    assert (moved.state, host.git("show", "trunk:f")) == ("merged", "two")
    assert host.git("symbolic-ref", "refs/heads/alias") == "refs/heads/trunk"
    meanwhile(host, "worktree", "add", "-q", str(tmp_path / "somebodys"), "trunk")
    workspace.repo.write("f", "three\n")
    _, moved = bring(bench, workspace, place, "alias")
    assert moved == Moved(state="checked_out", old=host.git("rev-parse", "trunk"), new=None)


def test_a_broken_ref_of_the_host_is_not_the_bundles_fault(
    bench: Bench, workspace: Workspace, host: Repo, place: HostRepository
) -> None:
    (host.path / "refs/heads").mkdir(exist_ok=True)
    (host.path / "refs/heads/broken").write_text("1" * 40 + "\n")
    workspace.repo.write("f", "two\n")
    _, moved = bring(bench, workspace, place)
    assert moved is not None
    assert (moved.state, host.git("show", "main:f")) == ("merged", "two")


def test_a_branch_that_is_checked_out_is_left_alone(
    bench: Bench, workspace: Workspace, origin: Repo, tmp_path: Path
) -> None:
    place = host_repository({"user": origin.path}, "user")
    workspace.repo.write("f", "two\n")
    _, moved = bring(bench, workspace, place)
    assert moved == Moved(state="checked_out", old=workspace.base, new=None)
    assert origin.git("status", "--porcelain") == ""
    assert origin.git("show", "refs/sandferry/run-1/1/snapshot:f") == "two"


def test_two_runs_at_once_both_arrive(
    bench: Bench, origin: Repo, host: Repo, place: HostRepository, tmp_path: Path
) -> None:
    captured = []
    for number in range(4):
        workspace = Workspace.clone(origin, tmp_path / f"w{number}")
        workspace.repo.write(f"new-{number}", "x\n")
        imported = bench.take_in(*workspace.capture(tmp_path / f"b{number}"), place)
        captured.append((f"run-{number}", imported))
    begin, faults = threading.Barrier(len(captured)), []

    def deliver(run: str, imported: object) -> None:
        begin.wait()
        try:
            deliver_refs(place, [imported], run)
            move_branch(place, imported, run, "main")
        except OperationFailed as exc:
            faults.append(exc.failure.reason)

    threads = [threading.Thread(target=deliver, args=one) for one in captured]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    arrived = [name for name in host.git("ls-tree", "--name-only", "main").split() if name.startswith("new-")]
    assert len(arrived) + len(faults) == 4
    assert len(arrived) >= 3
    assert set(faults) <= {"ref_moved"}
    assert host.git("fsck", "--strict", "--no-dangling") == ""


def test_a_branch_that_moves_between_look_and_swap_is_tried_again(
    bench: Bench, workspace: Workspace, host: Repo, place: HostRepository, monkeypatch
) -> None:
    origin = Repo(host.path.parent / "origin")
    moves = []
    real = branches.update_refs

    def somebody_else_first(git, lines):
        if len(moves) < 2:
            moves.append(origin.commit("theirs", **{f"theirs-{len(moves)}": "x\n"}))
            follow(host, origin)
        return real(git, lines)

    monkeypatch.setattr(branches, "update_refs", somebody_else_first)
    workspace.repo.write("f", "two\n")
    _, moved = bring(bench, workspace, place)
    assert moved is not None
    assert moved.old == moves[1]
    assert host.git("show", "-s", "--format=%P", "main") == moves[1]
    assert host.git("show", "main:f") == "two"


def test_a_branch_that_never_holds_still_is_given_up(
    bench: Bench, workspace: Workspace, host: Repo, place: HostRepository, monkeypatch
) -> None:
    tried = []
    monkeypatch.setattr(branches, "update_refs", lambda git, lines: bool(tried.append(1)))
    workspace.repo.write("f", "two\n")
    with pytest.raises(OperationFailed) as caught:
        bring(bench, workspace, place)
    assert (caught.value.failure.category, caught.value.failure.reason) == (
        Category.OPERATION_IN_PROGRESS,
        "ref_moved",
    )
    assert len(tried) == delivery.TRIES
    assert host.git("rev-parse", "main") == workspace.base


def test_a_part_that_does_not_fit_is_left_out(
    bench: Bench, workspace: Workspace, host: Repo, place: HostRepository, tmp_path: Path
) -> None:
    workspace.repo.write("f", "two\n")
    first = bench.take_in(*workspace.capture(tmp_path / "b"), place)
    others = []
    for number, object_format in enumerate(("sha256", "sha1"), start=1):
        nested = Repo.init(tmp_path / f"nested-{number}", object_format)
        head = nested.commit("inner", x="1\n")
        inner = Workspace(nested, head, nested.git("hash-object", "-t", "tree", "/dev/null"))
        part, path = inner.capture(tmp_path / f"n{number}", with_base=False)
        kept = {name: getattr(part, name) for name in part.__slots__}
        others.append(bench.take_in(type(part)(**{**kept, "number": number, "kind": "nested"}), path, place))
    delivered = deliver_refs(place, [first, *others], "run-1")
    assert delivered.left_out == (1,)
    assert host.git("show", "refs/sandferry/run-1/1/parts/2/snapshot:x") == "1"


def test_work_whose_base_the_host_lacks(bench: Bench, workspace: Workspace, tmp_path: Path) -> None:
    other = Repo.init(tmp_path / "other")
    workspace.repo.write("f", "two\n")
    with pytest.raises(OperationFailed) as caught:
        bring(bench, workspace, host_repository({"x": other.path}, "x"))
    assert caught.value.failure.reason == "bundle_prerequisites"
    assert other.git("for-each-ref") == ""


@pytest.mark.parametrize("branch", ["-f", "a..b", "a/.b", "x.lock", "a b", "", "@{-1}"])
def test_branches_that_cannot_be(bench: Bench, workspace: Workspace, place: HostRepository, branch: str) -> None:
    imported = bench.take_in(*workspace.capture(bench.root / "c"), place)
    with pytest.raises(InvalidRequest, match="branch: malformed"):
        move_branch(place, imported, "run-1", branch)


@pytest.mark.parametrize("run", ["", "a/b", "..", "x.lock", ".x", "a..b", "r\n"])
def test_runs_that_cannot_be(run: str) -> None:
    with pytest.raises(InvalidRequest, match="run_id: malformed"):
        delivery.run_refs(run)


def test_repositories_are_names(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="host_repository: not_configured"):
        host_repository({"a": tmp_path}, str(tmp_path))
    with pytest.raises(OperationFailed) as caught:
        host_repository({"a": tmp_path}, "a")
    assert caught.value.failure.reason == "not_a_repository"
