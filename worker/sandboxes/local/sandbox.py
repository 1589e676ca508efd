"""A sandbox that is a directory."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from worker.failures.model import Category, Failure, InvalidRequest, OperationFailed
from worker.sandboxes.base import MEBIBYTE, Completed, Layout
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.environment import SEARCH_PATH, built_env, checked_argv
from worker.sandboxes.local import groups, meta, tree
from worker.sandboxes.local.process import Process, end_group
from worker.sandboxes.local.records import Records

NAME = "local"
DIRECTORIES = ("workspace", "repos", "scratch", "home")
"""What a sandbox is made of; ``home`` is the ``HOME`` of its commands."""


class LocalSandbox:
    """A directory and the subprocesses that run in it, as the worker's user."""

    provider = NAME

    def __init__(self, path: Path, about: meta.Meta) -> None:
        self._path = path
        self._about = about
        self._records = Records(path / "commands")
        self._tag = ""
        self.id = path.name
        self.layout = Layout(
            workspace=str(path / "workspace"), repos=str(path / "repos"), scratch=str(path / "scratch")
        )

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels it was created with."""
        return dict(self._about.labels)

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline: Deadline,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bytes | None = None,
        output_limit: int = MEBIBYTE,
    ) -> Completed:
        """See :meth:`worker.sandboxes.base.Sandbox.run`."""
        self._check(deadline, "run")
        base = {"PATH": SEARCH_PATH, "HOME": self._home}
        built = built_env(base, self._about.env, env)
        place = cwd or self.layout.workspace
        with (
            Process(checked_argv(argv), built, place, stdin, output_limit) as process,
            self._records.of(self._tag, process.group),
        ):
            return process.finish(deadline)

    def write(self, path: str, data: bytes | Iterable[bytes], *, deadline: Deadline, mode: int = 0o600) -> None:
        """See :meth:`worker.sandboxes.base.Sandbox.write`."""
        self._check(deadline, "write")
        chunks = [data] if isinstance(data, bytes) else data
        tree.write_atomically(self._inside(path), _until(deadline, "write", chunks), mode=mode)

    def read(self, path: str, *, deadline: Deadline, offset: int = 0) -> Iterator[bytes]:
        """See :meth:`worker.sandboxes.base.Sandbox.read`."""
        self._check(deadline, "read")
        return _until(deadline, "read", tree.read_from(self._inside(path), offset))

    def mark(self, tag: str) -> None:
        """See :meth:`worker.sandboxes.base.Sandbox.mark`."""
        self._tag = tag

    def end_commands(self, tag: str, *, deadline: Deadline) -> None:
        """See :meth:`worker.sandboxes.base.Sandbox.end_commands`."""
        self._check(deadline, "run")
        for group in self._records.left(tag):
            end_group(group)

    def keep_alive(self, seconds: float, *, deadline: Deadline) -> None:  # noqa: ARG002 - nobody ends one by itself
        """See :meth:`worker.sandboxes.base.Sandbox.keep_alive`."""
        self._check(deadline, "keep_alive")

    def release(self, *, deadline: Deadline) -> None:
        """See :meth:`worker.sandboxes.base.Sandbox.release`."""
        deadline.check("sandbox", "release")
        # Renamed first: a removal that is cut short leaves nothing that could be taken for a sandbox.
        gone = remains(self._path)
        if self._path.is_dir():
            groups.kill_by_home(self._home)
            self._path.rename(gone)
        tree.remove(gone)

    @property
    def _home(self) -> str:
        return str(self._path / "home")

    def _check(self, deadline: Deadline, stage: str) -> None:
        deadline.check("sandbox", stage)
        if not self._path.is_dir():
            raise lost(stage)

    def _inside(self, path: str) -> Path:
        parent = Path(path).parent.resolve()
        if "\0" in path or not Path(path).is_absolute() or not parent.is_relative_to(self._path.resolve()):
            raise InvalidRequest("path", "outside_sandbox")
        return parent / Path(path).name


def remains(path: Path) -> Path:
    """Where a sandbox lies while it is removed."""
    return path.with_name(f".gone-{path.name}")


def lost(stage: str) -> OperationFailed:
    """The failure of a sandbox that is gone."""
    return OperationFailed(
        Failure(operation="sandbox", stage=stage, provider=NAME, category=Category.SANDBOX_LOST, reason="sandbox_lost")
    )


def _until(deadline: Deadline, stage: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        deadline.check("sandbox", stage)
        yield chunk
