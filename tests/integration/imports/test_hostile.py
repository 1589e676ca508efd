"""What no honest git writes is refused, with the oldest git as with the newest (facts A4, A5)."""

import struct
import time
import zlib
from hashlib import sha1
from pathlib import Path

import pytest

from tests.integration.imports.workshop import (
    DIRECTORY,
    FILE,
    GITLINK,
    LINK,
    Bench,
    Repo,
    Workspace,
    part_of,
    write_bundle,
)
from tests.rig.waiting import promptly
from worker.failures.model import Category, OperationFailed
from worker.imports.intake import Imported

ZEROS = 2 * 1024**3


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.init(tmp_path / "hostile")


def refusal(bench: Bench, repo: Repo, tree: str, *objects: str, **limits: object) -> tuple[Category | None, str | None]:
    with pytest.raises(OperationFailed) as caught:
        bench.take_tree(repo, tree, objects, **limits)
    return caught.value.failure.category, caught.value.failure.reason


@pytest.mark.parametrize(
    "names", [[b".git"], [b".GIT"], [b"git~1"], [b".."], [b"x", b"x"], [b"a/b"], [b"."], [b".g\xe2\x80\x8cit"]]
)
def test_names_that_git_takes_for_its_own(bench: Bench, repo: Repo, names: list[bytes]) -> None:
    blob = repo.blob(b"x")
    tree = repo.tree(*((FILE, name, blob) for name in names))
    assert refusal(bench, repo, tree, blob) == (Category.POLICY_DENIED, "unsafe_tree")


def test_a_linked_gitmodules(bench: Bench, repo: Repo) -> None:
    blob = repo.blob(b"f")
    tree = repo.tree((LINK, b".gitmodules", blob))
    assert refusal(bench, repo, tree, blob) == (Category.POLICY_DENIED, "unsafe_tree")


@pytest.mark.parametrize(
    ("target", "where"),
    [
        (b"/etc/passwd", b"l"),
        (b"../x", b"l"),
        (b"../../x", b"d/l"),
        (b"a/../../x", b"l"),
        (b".git/config", b"l"),
    ],
)
def test_links_that_lead_out(bench: Bench, repo: Repo, target: bytes, where: bytes) -> None:
    blob = repo.blob(target)
    *above, name = where.split(b"/")
    tree, objects = repo.tree((LINK, name, blob)), [blob]
    for directory in above:
        objects.append(tree)
        tree = repo.tree((DIRECTORY, directory, tree))
    assert refusal(bench, repo, tree, *objects) == (Category.POLICY_DENIED, "unsafe_link")


def test_modes_with_a_zero_in_front_are_what_they_are(bench: Bench, repo: Repo) -> None:
    blob = repo.blob(b"/etc/passwd")
    inner = repo.tree(("0120000", b"l", blob))
    tree = repo.tree(("040000", b"d", inner))
    assert refusal(bench, repo, tree, blob, inner) == (Category.POLICY_DENIED, "unsafe_link")


def history(bench: Bench, repo: Repo, author: bytes) -> Imported:
    """A snapshot on top of a commit as somebody wrote it long ago."""
    blob = repo.blob(b"x")
    tree = repo.tree(("0100644", b"f", blob))
    text = b"tree %s\nauthor %s\ncommitter A <a@b.c> 1 +0000\n\nold\n" % (tree.encode(), author)
    old = repo.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=text)
    snapshot = repo.commit_of(tree, old)
    path = bench.root / "old.bundle"
    refs = {"refs/sandferry/snapshot": snapshot, "refs/sandferry/head": old}
    write_bundle(repo, path, refs, [], "".join(f"{oid}\n" for oid in (snapshot, old, tree, blob)).encode())
    return bench.take_in(part_of(path, snapshot=snapshot, tree=tree, head=old), path)


@pytest.mark.parametrize("author", [b"A <a@b.c> 1 +5178900", b"A <a@b.c>1 +0000"])
def test_old_sins_of_public_histories_are_let_pass(bench: Bench, repo: Repo, author: bytes) -> None:
    assert history(bench, repo, author).paths == 1


def test_other_sins_are_not(bench: Bench, repo: Repo) -> None:
    with pytest.raises(OperationFailed) as caught:
        history(bench, repo, b"A <a@b.c 1 +0000")
    assert caught.value.failure.reason == "unsafe_tree"


def test_a_link_to_a_sibling_is_fine(bench: Bench, repo: Repo) -> None:
    blob, leaf = repo.blob(b"../other/x"), repo.blob(b"x")
    inner = repo.tree((LINK, b"l", blob))
    tree = repo.tree((DIRECTORY, b"d", inner), (FILE, b"z", leaf))
    assert bench.take_tree(repo, tree, [blob, leaf, inner]).paths == 2


def test_a_link_in_an_older_commit(bench: Bench, workspace: Workspace, tmp_path: Path) -> None:
    (workspace.repo.path / "l").symlink_to("/etc")
    workspace.repo.commit("planted")
    (workspace.repo.path / "l").unlink()
    workspace.repo.commit("hidden")
    with pytest.raises(OperationFailed) as caught:
        bench.take_in(*workspace.capture(tmp_path / "b"))
    assert caught.value.failure.reason == "unsafe_link"


@pytest.mark.parametrize("mode", [LINK, GITLINK])
def test_a_link_and_its_name_in_another_case(bench: Bench, repo: Repo, mode: str) -> None:
    blob = repo.blob(b"x")
    inner = repo.tree((FILE, b"f", blob))
    target = blob if mode == LINK else "1" * 40
    tree = repo.tree((mode, b"A", target), (DIRECTORY, b"a", inner))
    assert refusal(bench, repo, tree, blob, inner) == (Category.POLICY_DENIED, "unsafe_tree")


def test_files_that_differ_in_case_are_fine(bench: Bench, repo: Repo) -> None:
    blob = repo.blob(b"x")
    assert bench.take_tree(repo, repo.tree((FILE, b"A", blob), (FILE, b"a", blob)), [blob]).paths == 2


def test_a_hundred_million_paths_in_841_bytes(bench: Bench, repo: Repo) -> None:
    blob = repo.blob(b"")
    tree, objects = blob, [blob]
    for level in range(8):
        kind = DIRECTORY if level else FILE
        tree = repo.tree(*((kind, b"%d" % name, tree) for name in range(10)))
        objects.append(tree)
    begun = time.monotonic()
    assert refusal(bench, repo, tree, *objects) == (Category.POLICY_DENIED, "too_many_paths")
    assert time.monotonic() - begun < promptly(5)
    assert (bench.root / "hostile-0.bundle").stat().st_size < 1000


def test_more_directories_than_a_path_has(bench: Bench, repo: Repo) -> None:
    blob = repo.blob(b"")
    tree, objects = repo.tree((FILE, b"f", blob)), [blob]
    for _ in range(40):
        objects.append(tree)
        tree = repo.tree((DIRECTORY, b"d", tree))
    assert refusal(bench, repo, tree, *objects, depth=39) == (Category.POLICY_DENIED, "unsafe_tree")
    assert bench.take_tree(repo, tree, objects, depth=40).paths == 1


def test_two_gibibytes_of_zeros(bench: Bench, repo: Repo) -> None:
    packer = zlib.compressobj(9)
    zeros = b"".join(packer.compress(bytes(1 << 20)) for _ in range(ZEROS >> 20)) + packer.flush()
    size, head = ZEROS, [(3 << 4) | (ZEROS & 15)]
    size >>= 4
    while size:
        head[-1] |= 0x80
        head.append(size & 0x7F)
        size >>= 7
    pack = struct.pack(">4sII", b"PACK", 2, 1) + bytes(head) + zeros
    path = bench.root / "zeros.bundle"
    path.write_bytes(b"# v2 git bundle\n" + b"1" * 40 + b" refs/sandferry/snapshot\n\n" + pack + sha1(pack).digest())
    assert path.stat().st_size < 2_200_000
    begun = time.monotonic()
    for limits in ({}, {"largest": ZEROS * 2, "inflated": ZEROS - 1}):
        with pytest.raises(OperationFailed) as caught:
            bench.take_in(part_of(path, snapshot="1" * 40, tree="1" * 40), path, **limits)
        assert (caught.value.failure.category, caught.value.failure.reason) == (Category.POLICY_DENIED, "too_large")
    assert time.monotonic() - begun < promptly(1)


def test_every_cut_of_a_bundle_is_seen(bench: Bench, workspace: Workspace, tmp_path: Path) -> None:
    workspace.repo.write("f", "two\n")
    part, path = workspace.capture(tmp_path / "b")
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(OperationFailed) as caught:
            bench.take_in(part, path)
        assert caught.value.failure.category is Category.CORRUPT_DATA


def test_every_damaged_byte_of_a_pack_is_seen(bench: Bench, workspace: Workspace, tmp_path: Path) -> None:
    workspace.repo.write("f", "two\n")
    part, path = workspace.capture(tmp_path / "b")
    whole = path.read_bytes()
    for place in range(whole.index(b"PACK"), len(whole), 11):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        with pytest.raises(OperationFailed) as caught:
            bench.take_in(part, path)
        assert caught.value.failure.category in {Category.CORRUPT_DATA, Category.POLICY_DENIED}


def test_bytes_behind_the_pack(bench: Bench, workspace: Workspace, tmp_path: Path) -> None:
    part, path = workspace.capture(tmp_path / "b")
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(OperationFailed) as caught:
        bench.take_in(part, path)
    assert caught.value.failure.reason == "archive_invalid"


@pytest.mark.parametrize("fact", ["snapshot", "tree", "head", "format"])
def test_claims_that_do_not_hold(bench: Bench, workspace: Workspace, tmp_path: Path, fact: str) -> None:
    part, path = workspace.capture(tmp_path / "b")
    facts = {name: getattr(part, name) for name in ("snapshot", "tree", "head", "format", "baseline", "base")}
    lie = {"format": "sha256"}.get(fact, "2" * 40)
    with pytest.raises(OperationFailed) as caught:
        bench.take_in(part_of(path, **{**facts, fact: lie}), path)
    assert caught.value.failure.reason == ("object_format" if fact == "format" else "head_mismatch")
