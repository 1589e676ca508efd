"""The baseline: every file as it is, whatever the repository says to git, and nothing of it changed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.doubles.repositories import git
from tests.integration.clone.bench import local_sandbox
from worker.failures.model import OperationFailed
from worker.sandboxes.deadline import Deadline
from worker.snapshots.baseline import baseline

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


class Workspace:
    """A repository with one commit, and trees of it."""

    def __init__(self, tmp_path: Path) -> None:
        self.sandbox = local_sandbox(tmp_path / "sandboxes")
        self.path = tmp_path / "work"
        self.store = tmp_path / "store"
        self.path.mkdir()
        git("init", "-q", "-b", "main", cwd=self.path)
        self.write("f", b"one\n")
        self.write("d/g", b"two\n")
        self.write("d/h", b"three\n")
        self.commit()

    def write(self, path: str, data: bytes) -> None:
        (self.path / path).parent.mkdir(parents=True, exist_ok=True)
        (self.path / path).write_bytes(data)

    def commit(self) -> None:
        git("add", "-A", cwd=self.path)
        git("commit", "-qm", "base", cwd=self.path)

    def git(self, *args: str) -> str:
        return git(*args, cwd=self.path).stdout.rstrip("\n")

    def tree(self) -> str:
        shutil.rmtree(self.store, ignore_errors=True)
        return baseline(self.sandbox, str(self.path), str(self.store), Deadline.after(60))

    def files(self, tree: str | None = None) -> dict[str, bytes]:
        """What a tree holds, by path; gitlinks as their id."""
        tree = tree or self.tree()
        found = {}
        listing = subprocess.run(
            ["git", "ls-tree", "-r", "-z", tree], cwd=self.store, capture_output=True, check=True
        ).stdout
        for entry in listing.split(b"\0")[:-1]:
            (_, kind, oid), path = entry.partition(b"\t")[0].split(), entry.partition(b"\t")[2]
            blob = subprocess.run(["git", "cat-file", "blob", oid], cwd=self.store, capture_output=True, check=False)
            found[os.fsdecode(path)] = oid if kind == b"commit" else blob.stdout
        return found


@pytest.fixture
def work(tmp_path):
    return Workspace(tmp_path)


BASE = {"f": b"one\n", "d/g": b"two\n", "d/h": b"three\n"}


def test_a_clean_work_tree_is_its_commit(work):
    assert work.tree() == work.git("rev-parse", "HEAD^{tree}")


@pytest.mark.parametrize("bit", ["assume-unchanged", "skip-worktree"])
def test_an_edit_behind_a_bit_is_seen(work, bit):
    work.git("update-index", f"--{bit}", "f")
    work.write("f", b"edited\n")
    index = (work.path / ".git/index").read_bytes()
    assert work.files() == BASE | {"f": b"edited\n"}
    assert (work.path / ".git/index").read_bytes() == index


@pytest.mark.parametrize("mode", ["--cone", "--no-cone", "--sparse-index"])
def test_a_sparse_checkout_deletes_nothing_and_hides_nothing(work, mode):
    work.write("e/k", b"four\n")
    work.commit()
    work.git("sparse-checkout", "set", mode, "d")
    assert not (work.path / "e/k").exists()
    work.write("e/new", b"outside\n")
    assert work.files() == BASE | {"e/k": b"four\n", "e/new": b"outside\n"}


def test_an_edit_in_the_second_of_the_add_is_seen(work):
    for number in range(5):
        work.write("f", b"a%d\n" % number)
        work.git("add", "f")
        work.write("f", b"b%d\n" % number)
        assert work.files()["f"] == b"b%d\n" % number


@pytest.mark.parametrize("hook", ["post-index-change", "reference-transaction"])
def test_no_hook_runs(work, tmp_path, hook):
    path = work.path / ".git/hooks" / hook
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\ntouch {tmp_path}/mark\n")
    path.chmod(0o755)
    work.write("f", b"edited\n")
    assert work.files()["f"] == b"edited\n"
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("core.fsmonitor", "touch MARK; true"),
        ("core.autocrlf", "true"),
        ("core.safecrlf", "true"),
        ("core.worktree", "/tmp"),
        ("filter.x.clean", "touch MARK; tr a-z A-Z"),
        ("core.excludesFile", "IGNORE"),
        ("core.untrackedCache", "true"),
        ("core.attributesFile", "IGNORE"),
    ],
)
def test_no_config_of_the_repository_applies(work, tmp_path, key, value):
    (tmp_path / "ignore").write_text("*\n")
    work.write(".gitattributes", b"f filter=x\n")
    work.write("f", b"crlf\r\n")
    work.write("new", b"new\r\n")
    value = value.replace("MARK", str(tmp_path / "mark")).replace("IGNORE", str(tmp_path / "ignore"))
    git("config", key, value, cwd=work.path)
    assert work.files() == BASE | {".gitattributes": b"f filter=x\n", "f": b"crlf\r\n", "new": b"new\r\n"}
    assert not (tmp_path / "mark").exists()


def test_a_global_ignore_file_of_the_sandbox_hides_nothing(work):
    ignore = Path(work.sandbox.layout.repos).parent / "home/.config/git/ignore"
    ignore.parent.mkdir(parents=True)
    ignore.write_text("*\n")
    work.write("new", b"new\n")
    assert work.files() == BASE | {"new": b"new\n"}


def test_the_executable_bit_counts_whatever_filemode_says(work):
    work.git("config", "core.fileMode", "false")
    (work.path / "f").chmod(0o755)
    assert git("ls-tree", work.tree(), "f", cwd=work.store).stdout.startswith("100755")


def test_a_lfs_filter_without_git_lfs_keeps_the_bytes(work):
    work.write(".gitattributes", b"*.bin filter=lfs\n")
    work.git("config", "filter.lfs.clean", "no-such-program %f")
    work.git("config", "filter.lfs.required", "true")
    work.write("a.bin", b"raw\n")
    assert work.files()["a.bin"] == b"raw\n"


@pytest.mark.parametrize("commit", [False, True])
@pytest.mark.parametrize("where", ["nested", "new/deep/nested", "line\nend"])
def test_a_nested_repository_is_set_apart_and_the_rest_taken(work, where, commit):
    inner = work.path / where
    inner.mkdir(parents=True)
    git("init", "-q", cwd=inner)
    (inner / "y").write_text("y")
    if commit:
        git("add", "-A", cwd=inner)
        git("commit", "-qm", "inner", cwd=inner)
    work.write("good", b"good\n")
    assert work.files() == BASE | {"good": b"good\n"}


@pytest.mark.parametrize("present", [False, True])
def test_a_submodule_that_is_not_checked_out_is_not_removed(work, present):
    oid = "1" * 40
    work.git("update-index", "--add", "--cacheinfo", f"160000,{oid},lib")
    work.git("commit", "-qm", "submodule")
    if present:
        (work.path / "lib").mkdir()
    assert work.files() == BASE | {"lib": oid.encode()}


@pytest.mark.parametrize("damage", [b"", b"DIRC garbage"])
def test_an_unreadable_index_is_replaced_by_head(work, damage):
    work.write("f", b"edited\n")
    (work.path / "d/h").unlink()
    (work.path / ".git/index").write_bytes(damage)
    assert work.files() == {"f": b"edited\n", "d/g": b"two\n"}


def test_a_tracked_file_that_is_ignored_now_is_kept(work):
    work.write("f", b"edited\n")
    work.write(".gitignore", b"f\nnew\n")
    work.write("new", b"ignored\n")
    assert work.files() == BASE | {"f": b"edited\n", ".gitignore": b"f\nnew\n"}


@pytest.mark.parametrize("setup", ["split", "intent", "lock", "unborn", "worktree", "sha256", "shallow", "none"])
def test_every_kind_of_repository(work, tmp_path, setup):
    expected = BASE | {"new": b"new\n"}
    match setup:
        case "split":
            work.git("update-index", "--split-index")
        case "intent":
            work.write("new", b"new\n")
            work.git("add", "-N", "new")
        case "lock":
            (work.path / ".git/index.lock").write_text("")
        case "unborn":
            work.git("checkout", "-q", "--orphan", "x")
        case "worktree":
            work.git("worktree", "add", "-q", str(tmp_path / "linked"), "HEAD")
            work.path = tmp_path / "linked"
        case "sha256":
            shutil.rmtree(work.path / ".git")
            work.git("init", "-q", "--object-format=sha256")
            work.commit()
        case "shallow":
            work.write("f", b"again\n")
            work.commit()
            git("clone", "-q", "--depth", "1", f"file://{work.path}", str(tmp_path / "shallow"))
            work.path = tmp_path / "shallow"
            expected["f"] = b"again\n"
        case "none":
            shutil.rmtree(work.path / ".git")
    work.write("new", b"new\n")
    tree = work.tree()
    assert work.files(tree) == expected
    assert len(tree) == (64 if setup == "sha256" else 40)


def test_a_repository_of_another_user_is_captured(work):
    for path in (work.path, *work.path.rglob("*")):
        os.lchown(path, 65534, 65534)
    work.write("new", b"new\n")
    assert work.files() == BASE | {"new": b"new\n"}


def test_a_pipe_stops_nothing(work):
    os.mkfifo(work.path / "pipe")
    assert work.files() == BASE


@pytest.mark.parametrize(
    "name", ['q"uote', "tab\there", "line\nend", "ümlaut", " space ", "-dash", ":(top)magic", "back\\slash"]
)
def test_names_of_every_kind_arrive(work, name):
    work.write(name, b"x")
    assert work.files() == BASE | {name: b"x"}


def test_nothing_of_the_repository_is_changed(work):
    work.write("f", b"edited\n")
    work.write("new", b"new\n")
    work.git("add", "f")
    before = {path: path.read_bytes() for path in (work.path / ".git").rglob("*") if path.is_file()}
    # git touches a loose object that it would have written, which keeps it from a prune.
    times = {path: path.stat().st_mtime_ns for path in before if "objects" not in path.parts}
    work.tree()
    after = {path: path.read_bytes() for path in (work.path / ".git").rglob("*") if path.is_file()}
    assert after == before
    assert {path: path.stat().st_mtime_ns for path in times} == times


@pytest.mark.parametrize("packed", [False, True])
def test_the_tree_outlives_its_repository(work, packed):
    work.write("dirty", b"dirty\n")
    if packed:
        work.git("gc", "-q")
    tree = work.tree()
    shutil.rmtree(work.path / ".git")
    assert work.files(tree) == BASE | {"dirty": b"dirty\n"}
    assert git("rev-parse", "refs/sandferry/baseline", cwd=work.store).stdout.strip() == tree


def test_the_tree_is_copied_where_it_cannot_be_linked(work, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(elsewhere)], check=True)
    try:
        work.store = elsewhere / "store"
        work.git("gc", "-q")
        tree = work.tree()
        shutil.rmtree(work.path / ".git")
        assert work.files(tree) == BASE
    finally:
        subprocess.run(["umount", "-l", str(elsewhere)], check=True)


def test_a_file_that_vanishes_repeats_the_add(work, tmp_path):
    """A git that loses a file on its first add, as a writer of temporary files makes it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").write_text(
        f'#!/bin/sh\nif [ "$1" = add ] && ! [ -e {tmp_path}/mark ]; then touch {tmp_path}/mark; exit 128; fi\n'
        'exec /usr/bin/git "$@"\n'
    )
    (folder / "git").chmod(0o755)
    work.sandbox = local_sandbox(tmp_path / "s", {"PATH": f"{folder}:/usr/bin:/bin"})
    work.write("new", b"new\n")
    assert work.files() == BASE | {"new": b"new\n"}
    assert (tmp_path / "mark").exists()


def test_a_store_that_is_there_or_a_tree_that_is_not_is_a_failure(work):
    with pytest.raises(OperationFailed) as caught:
        baseline(work.sandbox, str(work.path / "nowhere"), str(work.store), Deadline.after(30))
    assert (caught.value.failure.operation, caught.value.failure.stage) == ("clone", "baseline")


def test_an_empty_directory_is_the_empty_tree(work):
    shutil.rmtree(work.path)
    work.path.mkdir()
    assert work.tree() == EMPTY_TREE


@pytest.mark.parametrize("attributes", [b"*.txt text\n", b"* text=auto\n", b"*.md linguist-documentation\n", None])
def test_what_nobody_touched_is_no_change(bench, tmp_path, attributes):
    """Lines of a blob that end in CRLF, against what attributes say, are no work of an agent's."""
    files = {"w.txt": b"a\r\nb\r\n", "d/x.txt": b"c\n", "b.bin": b"\0\r\n"}
    bench.repository(files=files | ({".gitattributes": attributes} if attributes else {}))
    done = bench.clone()
    (Path(done.path) / "new").write_bytes(b"new\n")
    store = tmp_path / "store"
    later = baseline(bench.sandbox, done.path, str(store), Deadline.after(60))
    assert git("diff", "--name-status", done.baseline, later, cwd=baseline_store(bench)).stdout == "A\tnew\n"


def baseline_store(bench) -> Path:
    """What Sandferry kept of the one checkout, borrowing the new objects for the test."""
    (store,) = Path(bench.sandbox.layout.scratch).glob("clones/*/baseline.git")
    with (store / "objects/info/alternates").open("a") as alternates:
        alternates.write(f"{bench.remotes.parent}/store/objects\n")
    return store
