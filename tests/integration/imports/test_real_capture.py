"""What the capture makes is what the import takes: both sides as they are."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.clone.bench import local_sandbox
from tests.integration.imports.workshop import Repo, Workspace, worktree_tree
from worker.imports.branches import move_branch
from worker.imports.changes import changes
from worker.imports.collect import fetch_capture
from worker.imports.delivery import deliver_refs
from worker.imports.intake import Imported, import_part
from worker.imports.limits import Limits
from worker.imports.repository import HostRepository, host_repository
from worker.sandboxes.base import Completed, Sandbox
from worker.sandboxes.deadline import Deadline
from worker.snapshots.capture import CaptureRequest, capture


@pytest.fixture(autouse=True)
def _allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDFERRY_ALLOW_LOCAL", "1")


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return local_sandbox(tmp_path / "sandboxes")


@pytest.fixture
def agent(origin: Repo, sandbox: Sandbox) -> Workspace:
    return Workspace.clone(origin, Path(sandbox.layout.workspace) / "repo")


def carry(
    sandbox: Sandbox, path: Path, here: Path, base: str | None, host: HostRepository | None = None
) -> list[Imported]:
    here.mkdir()
    deadline, limits = Deadline.after(60), Limits()
    captured = capture(sandbox, CaptureRequest(path=str(path), key="op", base=base), deadline)
    got = fetch_capture(sandbox, captured.out_dir, here, limits=limits, deadline=deadline)
    return [
        import_part(part, bundle, here / f"q{part.number}", limits=limits, deadline=deadline, host=host)
        for part, bundle in zip(got.text.parts, got.bundles, strict=True)
    ]


def test_work_without_a_host_repository(sandbox: Sandbox, agent: Workspace, tmp_path: Path) -> None:
    agent.repo.commit("mine", committed="c\n")
    agent.repo.write("keep", "".join(f"{n}\n" for n in range(29)) + "last\n")  # a delta, were the pack thin
    (agent.repo.path / "gone").unlink()
    (imported,) = carry(sandbox, agent.repo.path, tmp_path / "here", agent.base)
    assert imported.part.tree == worktree_tree(agent.repo)
    diff = changes(imported, tmp_path / "diff.patch")
    assert (diff.added, diff.modified, diff.deleted) == (1, 1, 1)
    assert diff.patch is not None
    agent.repo.git("reset", "-q", "--hard", agent.base)
    agent.repo.git("apply", "--index", str(diff.patch))
    assert agent.repo.git("write-tree") == imported.part.tree


def test_work_into_a_host_repository(sandbox: Sandbox, agent: Workspace, origin: Repo, tmp_path: Path) -> None:
    agent.repo.git("switch", "-q", "-c", "feature")
    feature = agent.repo.commit("elsewhere", other="o\n")
    agent.repo.git("switch", "-q", "main")
    agent.repo.write("f", "two\n")
    host = host_repository({"o": origin.path}, "o")
    (imported,) = carry(sandbox, agent.repo.path, tmp_path / "here", agent.base, host)
    delivered = deliver_refs(host, [imported], "run")
    assert delivered.refs["refs/sandferry/run/1/heads/feature"] == feature
    assert move_branch(host, imported, "run", "work").state == "created"
    assert origin.git("show", "work:f") == "two"


def test_nothing_changed(sandbox: Sandbox, agent: Workspace, tmp_path: Path) -> None:
    (imported,) = carry(sandbox, agent.repo.path, tmp_path / "here", agent.base)
    diff = changes(imported, tmp_path / "diff.patch")
    assert (diff.added, diff.modified, diff.deleted, diff.insertions, diff.deletions) == (0, 0, 0, 0, 0)


def test_a_directory_with_a_repository_in_it(sandbox: Sandbox, tmp_path: Path) -> None:
    root = Path(sandbox.layout.workspace) / "plain"
    nested = Repo.init(root / "tool")
    nested.commit("inner", main="x\n")
    (root / "notes").write_text("n\n")
    first, second = carry(sandbox, root, tmp_path / "here", None)
    assert (first.part.kind, first.paths, second.part.kind, second.paths) == ("directory", 1, "nested", 1)
    assert first.whole
    assert second.whole
    assert changes(first, tmp_path / "p").added == 1


class Recorder:
    """A sandbox that notes which files are read from it, and may damage what commands say on their way."""

    def __init__(self, sandbox: Sandbox, damage: tuple[bytes, bytes] = (b"", b"")) -> None:
        self._sandbox = sandbox
        self._damage = damage
        self.reads: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)

    def run(self, argv: list[str], **options: Any) -> Completed:
        done = self._sandbox.run(argv, **options)
        return replace(done, stdout=done.stdout.replace(*self._damage)) if self._damage[0] else done

    def read(self, path: str, **options: Any) -> Iterator[bytes]:
        self.reads.append(Path(path).name)
        return self._sandbox.read(path, **options)


@pytest.mark.parametrize(
    ("damage", "reads"),
    [
        ((b"", b""), []),
        ((b"PACK", b"PICK"), ["part-0.bundle"]),
        ((b"file part-0.bundle", b"file part-0.bandle"), ["part-0.bundle", "empty.z"]),
    ],
    ids=["whole", "damaged", "malformed"],
)
def test_small_files_come_with_the_answer(
    sandbox: Sandbox, agent: Workspace, tmp_path: Path, damage: tuple[bytes, bytes], reads: list[str]
) -> None:
    agent.repo.write("f", "two\n")
    (agent.repo.path / "nothing").mkdir()
    box: Any = Recorder(sandbox, damage)
    deadline, limits, here = Deadline.after(60), Limits(), tmp_path / "here"
    here.mkdir()
    captured = capture(box, CaptureRequest(path=str(agent.repo.path), key="op", base=agent.base), deadline)
    got = fetch_capture(captured.files, captured.out_dir, here, limits=limits, deadline=deadline, text=captured.text)
    assert sorted(box.reads) == sorted(reads)
    assert got.empty == (b"nothing",)
    assert got.bundles[0].read_bytes() == (Path(captured.out_dir) / "part-0.bundle").read_bytes()
