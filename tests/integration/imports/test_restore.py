"""From the files of a capture to an artifact, and back with the commands of the documentation."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.imports.workshop import _ENV, Repo, Workspace
from worker.failures.model import OperationFailed
from worker.imports.changes import changes
from worker.imports.collect import fetch_capture
from worker.imports.intake import import_part
from worker.imports.limits import Limits
from worker.imports.manifest import Origin, manifest, printable, stat
from worker.sandboxes.deadline import Deadline
from worker.snapshots.format import Part
from worker.stores.artifacts import ArtifactStore

DOCS = Path(__file__).parents[3] / "docs" / "artifacts.md"


class Box:
    """A sandbox that is a directory."""

    def read(self, path: str, *, deadline: Deadline, offset: int = 0) -> Iterator[bytes]:
        yield Path(path).read_bytes()[offset:]


def write_capture(out: Path, *parts: Part, empty: bytes = b"", omitted: str = "", omitted_z: bytes = b"") -> None:
    lines = ["sandferry-capture 1", "quiesce none"]
    for part in parts:
        base = "absent" if part.base_absent else part.base or "none"
        lines.append(
            f"part {part.number} kind={part.kind} format={part.format} snapshot={part.snapshot} tree={part.tree}"
            f" baseline={part.baseline or 'none'} base={base} head={part.head or 'none'} branch={int(part.branch)}"
            f" state={part.state} bundle={part.size} digest={part.digest}"
        )
        (out / f"part-{part.number}.path").write_bytes(b"")
    (out / "capture.txt").write_text(
        "\n".join([*lines, *filter(None, [omitted]), "ignored 0", f"empty {empty.count(0)}", "end", ""])
    )
    (out / "empty.z").write_bytes(empty)
    (out / "omitted.z").write_bytes(omitted_z)


def keep(out: Path, root: Path, url: str) -> tuple[Path, str]:
    """What a copy-back does after its capture; the directory of the artifact, and its digest."""
    root.mkdir()
    deadline, limits = Deadline.after(60), Limits()
    capture = fetch_capture(Box(), str(out), root, limits=limits, deadline=deadline)
    imported = [
        import_part(part, capture.bundles[part.number], root / f"q{part.number}", limits=limits, deadline=deadline)
        for part in capture.text.parts
    ]
    diffs = [changes(part, root / "diff.patch") for part in imported]
    (root / "stat.json").write_text(json.dumps(stat(imported, diffs)))
    files = {path.name: path for path in (*capture.bundles, root / "stat.json")}
    files |= {diff.patch.name: diff.patch for diff in diffs if diff.patch}
    about = manifest(Origin(run_id="r", url=url, depth=None, created=1), capture, imported, diffs)
    store = ArtifactStore("main", f"file://{root}/store")
    digest = store.put(files, about).digest
    return root / "store" / "sha256" / digest[:2] / digest, digest


def documented(name: str, cwd: Path, **variables: object) -> None:
    """Run a block of the documentation, as it stands there."""
    block = re.search(rf"```sh {name}\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert block
    env = {**_ENV, "HOME": str(cwd), **{key: str(value) for key, value in variables.items()}}
    subprocess.run(["sh", "-euc", block[1]], cwd=cwd, env=env, check=True, capture_output=True)


def files_of(directory: Path) -> dict[str, bytes]:
    found = (path for path in directory.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


@pytest.fixture
def artifact(workspace: Workspace, origin: Repo, tmp_path: Path) -> Path:
    workspace.repo.commit("mine", **{"committed": "c\n", "d/e": "changed\n"})
    workspace.repo.write("f", "one\ntwo\n")
    workspace.repo.write("new", "n\n")
    (workspace.repo.path / "gone").unlink()
    (tmp_path / "out").mkdir()
    part, _ = workspace.capture(tmp_path / "out" / "part-0.bundle")
    write_capture(tmp_path / "out", part, empty=b"a\0b/c\0", omitted="omitted fifo 1", omitted_z=b"fifo\0pipe\0")
    return keep(tmp_path / "out", tmp_path / "kept", str(origin.path))[0]


def test_the_manifest_says_where_it_belongs(artifact: Path, workspace: Workspace, origin: Repo) -> None:
    about = json.loads((artifact / "manifest.json").read_text())
    assert (about["origin"], about["run_id"], about["complete"]) == (str(origin.path), "r", False)
    assert (about["omitted"], about["empty_directories"]) == ({"fifo": 1}, ["a", "b/c"])
    part = about["parts"][0]
    assert (part["base"], part["prerequisites"]) == (workspace.base, [workspace.base])
    assert (part["bundle"], part["patch"], part["object_format"]) == ("part-0.bundle", "diff.patch", "sha1")
    assert sorted(about["files"]) == ["diff.patch", "part-0.bundle", "stat.json"]
    counts = json.loads((artifact / "stat.json").read_text())["parts"]
    assert counts == [{"number": 0, "added": 2, "modified": 2, "deleted": 1, "insertions": 4, "deletions": 2}]


def test_a_repository_comes_back(artifact: Path, workspace: Workspace, origin: Repo, tmp_path: Path) -> None:
    documented("repository", tmp_path, ORIGIN=origin.path, ARTIFACT=artifact)
    restored = Repo(tmp_path / "restored")
    assert files_of(restored.path) == files_of(workspace.repo.path)
    assert restored.git("rev-parse", "HEAD^") == workspace.repo.git("rev-parse", "HEAD")
    documented("uncommitted", restored.path)
    assert files_of(restored.path) == files_of(workspace.repo.path)
    assert restored.git("status", "--porcelain").split("\n") == ["M f", " D gone", "?? new"]
    assert restored.git("fsck", "--strict") == ""


def test_the_patch_alone_brings_the_work(artifact: Path, workspace: Workspace, origin: Repo, tmp_path: Path) -> None:
    documented("patch", tmp_path, ORIGIN=origin.path, ARTIFACT=artifact)
    assert files_of(tmp_path / "patched") == files_of(workspace.repo.path)


def test_a_directory_comes_back(tmp_path: Path) -> None:
    repo = Repo.init(tmp_path / "plain")
    repo.write("a", "1\n")
    repo.write("b/c", "2\n")
    repo.git("add", "-A")
    tree = repo.git("write-tree")
    (tmp_path / "out").mkdir()
    empty = repo.git("hash-object", "-t", "tree", "/dev/null")
    snapshot = repo.commit_of(tree)
    workspace = Workspace(repo, snapshot, empty)
    repo.git("update-ref", "HEAD", snapshot)
    part, _ = workspace.capture(tmp_path / "out" / "part-0.bundle", with_base=False)
    write_capture(tmp_path / "out", part)
    artifact, digest = keep(tmp_path / "out", tmp_path / "kept", "none")
    documented("directory", tmp_path, ARTIFACT=artifact)
    assert files_of(tmp_path / "restored") == {"a": b"1\n", "b/c": b"2\n"}
    assert artifact.name == digest


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("capture.txt", b"sandferry-capture 2\nend\n", ("parse", "malformed")),
        ("part-0.path", b"../x", ("parse", "malformed")),
        ("empty.z", b"x\0", ("parse", "malformed")),
        ("omitted.z", b"fifo\0x\0", ("parse", "malformed")),
        ("part-0.bundle", b"short", ("transport", "size_mismatch")),
    ],
)
def test_captures_that_are_not_as_agreed(
    workspace: Workspace, tmp_path: Path, name: str, data: bytes, why: tuple[str, str]
) -> None:
    (tmp_path / "out").mkdir()
    part, _ = workspace.capture(tmp_path / "out" / "part-0.bundle")
    write_capture(tmp_path / "out", part)
    (tmp_path / "out" / name).write_bytes(data)
    (tmp_path / "here").mkdir()
    with pytest.raises(OperationFailed) as caught:
        fetch_capture(Box(), str(tmp_path / "out"), tmp_path / "here", limits=Limits(), deadline=Deadline.after(9))
    assert (caught.value.failure.stage, caught.value.failure.reason) == why


def test_more_than_the_limit_is_not_even_fetched(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    part, _ = workspace.capture(tmp_path / "out" / "part-0.bundle")
    write_capture(tmp_path / "out", part)
    with pytest.raises(OperationFailed) as caught:
        fetch_capture(
            Box(), str(tmp_path / "out"), tmp_path, limits=Limits(bundle=part.size - 1), deadline=Deadline.after(9)
        )
    assert (caught.value.failure.stage, caught.value.failure.reason) == ("parse", "too_large")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"a b", "a b"),
        ("grün".encode(), "grün"),
        (b"a\nb\x1b[0m", "a\\nb\\x1b[0m"),
        (b"\xff", "\\xff"),
        (b"a\\n", "a\\\\n"),
        ("\udcff", "\\xff"),
    ],
)
def test_names_that_are_shown(name: bytes | str, shown: str) -> None:
    assert printable(name) == shown
