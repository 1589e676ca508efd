"""A workspace with a history, a capture of it in any shell, and a host that takes in what came out."""

import os
import shutil
import stat
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.doubles.repositories import git
from tests.integration.clone.bench import local_sandbox
from worker.sandboxes.base import Completed, Sandbox
from worker.sandboxes.deadline import Deadline
from worker.snapshots.baseline import baseline
from worker.snapshots.capture import Captured, CaptureRequest, capture, discard
from worker.snapshots.digest import bundle_digest
from worker.snapshots.format import CaptureText, Part, parse_empty, parse_omitted, parse_path

SHELLS = {"dash": ["dash"], "bash": ["bash", "--posix"], "busybox": ["busybox", "sh"]}


def soon(seconds: float = 60) -> Deadline:
    return Deadline.after(seconds)


class Shell:
    """A sandbox whose ``sh`` is another one; ``path`` is put before or in place of its programs."""

    def __init__(self, sandbox: Sandbox, argv: list[str], path: str | None = None) -> None:
        self._sandbox, self._argv, self.path = sandbox, argv, path
        self.runs: list[Completed] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)

    def run(self, argv: list[str], **options: Any) -> Completed:
        if argv[0] == "sh":
            argv = [*self._argv, *argv[1:]]
        env = {**(options.pop("env", None) or {}), **({"PATH": self.path} if self.path else {})}
        self.runs.append(self._sandbox.run(argv, env=env, **options))
        return self.runs[-1]


def state_of(root: Path) -> dict[str, object]:
    """Everything there is to see of a tree but access times."""
    seen: dict[str, object] = {}
    for path in root.rglob("*"):
        about = path.lstat()
        content: object = None
        if stat.S_ISLNK(about.st_mode):
            content = path.readlink()
        elif stat.S_ISREG(about.st_mode):
            content = path.read_bytes()
        # git renews the time of an object file that it finds when it wants to write the object; nothing else.
        renewed = "/objects/" in str(path) and stat.S_ISREG(about.st_mode)
        when = None if renewed else about.st_mtime_ns
        seen[str(path)] = (about.st_mode, when, about.st_ino, about.st_nlink, content)
    return seen


@dataclass
class Result:
    """What a capture gave and what a host made of it."""

    text: CaptureText
    hosts: list[Path] = field(default_factory=list)
    paths: list[bytes] = field(default_factory=list)
    refs: list[dict[str, str]] = field(default_factory=list)
    needs: list[list[str]] = field(default_factory=list)
    bundles: list[int] = field(default_factory=list)
    empty: tuple[bytes, ...] = ()
    omitted: tuple[tuple[str, bytes], ...] = ()

    @property
    def part(self) -> Part:
        return self.text.parts[0]

    def at(self, path: str) -> int:
        """The number of the part at ``path``."""
        return self.paths.index(os.fsencode(path))

    def files(self, number: int = 0, commit: str | None = None) -> dict[str, object]:
        """Path -> bytes of files, ``(mode, bytes)`` of any other kind of entry."""
        commit = commit or self.text.parts[number].snapshot
        found: dict[str, object] = {}
        for entry in self._git(number, "ls-tree", "-r", "-z", commit).split(b"\0")[:-1]:
            about, _, path = entry.partition(b"\t")
            mode, kind, oid = about.decode().split()
            data = oid.encode() if kind == "commit" else self._git(number, "cat-file", "blob", oid)
            found[os.fsdecode(path)] = data if mode == "100644" else (mode, data)
        return found

    def changes(self) -> dict[str, str]:
        """Path -> status between the baseline (else the base) and the snapshot."""
        before = self.part.baseline or self.part.base
        assert before
        words = self._git(0, "diff-tree", "-r", "-z", "--name-status", before, self.part.snapshot).split(b"\0")[:-1]
        return {os.fsdecode(path): status.decode() for status, path in zip(words[::2], words[1::2], strict=True)}

    def log(self, ref: str, number: int = 0) -> list[str]:
        """Subjects of the commits of a ref of the bundle."""
        return self._git(number, "log", "--format=%s", self.refs[number][ref]).decode().splitlines()

    def _git(self, number: int, *args: str) -> bytes:
        return subprocess.run(["git", *args], cwd=self.hosts[number], capture_output=True, check=True).stdout


class Bench:
    """One workspace, cloned from an origin unless ``plain``."""

    def __init__(self, tmp_path: Path, shell: str = "dash") -> None:
        self.tmp = tmp_path
        self.sandbox = Shell(local_sandbox(tmp_path / "sandboxes"), SHELLS[shell])
        self.path = Path(self.sandbox.layout.workspace) / "r"
        self.host = tmp_path / "host.git"
        self.request: dict[str, Any] = {}
        self._count = 0

    def cloned(self, files: dict[str, bytes | str] | None = None, *options: str, format_: str = "sha1") -> "Bench":
        """The workspace is a clone of an origin with one commit, its baseline taken."""
        origin = self.tmp / "origin"
        git("init", "-q", "-b", "main", f"--object-format={format_}", str(origin))
        for path, data in (files or {"f": b"one\n", "d/g": b"two\n", "d/h": b"three\n"}).items():
            put(origin / path, data)
        self.commit("base", at=origin)
        git("clone", "-q", *options, origin.as_uri(), str(self.path))
        git("clone", "-q", "--bare", origin.as_uri(), str(self.host))
        self.take_baseline()
        return self

    def take_baseline(self) -> None:
        """Base and baseline are what the workspace is now."""
        self._count += 1
        store = f"{self.sandbox.layout.scratch}/baseline-{self._count}"
        tree = baseline(self.sandbox, str(self.path), store, soon())
        base = git("rev-parse", "-q", "--verify", "HEAD", cwd=self.path, check=False).stdout.strip()
        self.request |= {"store": store, "baseline": tree, "base": base or None}

    def plain(self) -> "Bench":
        """The workspace is an empty directory."""
        self.path.mkdir()
        return self

    def git(self, *args: str, at: Path | str = ".", check: bool = True) -> str:
        return git(*args, cwd=self.path / at, check=check).stdout.rstrip("\n")

    def write(self, path: str, data: bytes | str) -> Path:
        put(self.path / path, data)
        return self.path / path

    def commit(self, subject: str, at: Path | str = ".") -> str:
        git("add", "-A", cwd=self.path / at)
        git("commit", "-qm", subject, "--allow-empty", cwd=self.path / at)
        return git("rev-parse", "HEAD", cwd=self.path / at).stdout.strip()

    def capture(self, *, intact: bool = True, host: Path | None = None, **options: Any) -> Result:
        """Capture, see that nothing has changed, and take everything in."""
        before = state_of(self.path) if intact else {}
        captured = self.raw(**options)
        if intact:
            after = state_of(self.path)
            assert {path for path in before | after if before.get(path) != after.get(path)} == set()
        result = self.taken_in(captured, host or self.host)
        discard(self.sandbox, captured, soon())
        assert self.leftovers() == []
        return result

    def raw(self, **options: Any) -> Captured:
        """The capture itself."""
        request = {"path": str(self.path), "key": "op1", **self.request, **options}
        return capture(self.sandbox, CaptureRequest(**request), soon())

    def leftovers(self) -> list[str]:
        """Directories of captures in the sandbox."""
        home = Path(self.sandbox.layout.scratch) / "copy_back"
        return sorted(path.name for path in home.iterdir()) if home.exists() else []

    def taken_in(self, captured: Captured, host: Path) -> Result:
        """Read every file strictly; fetch every bundle with all of git's checks."""
        out, result = Path(captured.out_dir), Result(captured.text)
        assert {path.name for path in out.iterdir()} == {"capture.txt", "empty.z", "omitted.z"} | {
            f"part-{part.number}.{kind}" for part in captured.text.parts for kind in ("bundle", "path")
        }
        result.empty = parse_empty((out / "empty.z").read_bytes(), captured.text.empty)
        result.omitted = parse_omitted((out / "omitted.z").read_bytes(), captured.text.omitted)
        for part in captured.text.parts:
            result.paths.append(parse_path((out / f"part-{part.number}.path").read_bytes(), part.number))
            self._take_in(part, out / f"part-{part.number}.bundle", host, result)
        assert len(set(result.paths)) == len(result.paths)
        return result

    def _take_in(self, part: Part, bundle: Path, host: Path, result: Result) -> None:
        data = bundle.read_bytes()
        assert (part.size, part.digest) == (len(data), bundle_digest(len(data), [data]))
        self._count += 1
        there = self.tmp / f"taken-{self._count}.git"
        if part.number == 0 and host.exists():
            shutil.copytree(host, there)
        else:
            git("init", "-q", "--bare", f"--object-format={part.format}", str(there))
        head = data.split(b"\n\n")[0].decode(errors="surrogateescape").splitlines()
        result.needs.append([line[1:].split(" ")[0] for line in head if line.startswith("-")])
        pairs = [line.split(" ", 1) for line in head if line[0] in "0123456789abcdef"]
        result.refs.append({name.removeprefix("refs/sandferry/"): oid for oid, name in pairs})
        git("-c", "fetch.fsckObjects=true", "fetch", "-q", str(bundle), "+refs/sandferry/*:refs/taken/*", cwd=there)
        git("fsck", "--strict", "--no-dangling", cwd=there)
        result.hosts.append(there)
        assert git("rev-parse", f"{part.snapshot}^{{tree}}", cwd=there).stdout.strip() == part.tree
        result.bundles.append(len(data))


def put(path: Path, data: bytes | str) -> None:
    """Write a file, its directories too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
