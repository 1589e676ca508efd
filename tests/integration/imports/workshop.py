"""Repositories to take in: an honest workspace with its capture, and trees that no honest git writes."""

import hashlib
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from worker.imports.intake import Imported, import_part
from worker.imports.limits import Limits
from worker.imports.repository import HostRepository
from worker.sandboxes.deadline import Deadline
from worker.snapshots.digest import bundle_digest
from worker.snapshots.format import Part

_ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
FILE, LINK, DIRECTORY, GITLINK = "100644", "120000", "40000", "160000"


@dataclass(frozen=True)
class Repo:
    """A repository of a test."""

    path: Path
    object_format: str = "sha1"

    @classmethod
    def init(cls, path: Path, object_format: str = "sha1", *, bare: bool = False) -> "Repo":
        path.mkdir(parents=True)
        repo = cls(path, object_format)
        repo.git("init", "-q", "-b", "main", f"--object-format={object_format}", *(["--bare"] if bare else []))
        return repo

    def git(self, *args: str, stdin: bytes = b"") -> str:
        return self.raw(*args, stdin=stdin).decode().strip()

    def raw(self, *args: str, stdin: bytes = b"") -> bytes:
        return subprocess.run(
            ["git", *args], cwd=self.path, input=stdin, env=_ENV, check=True, capture_output=True
        ).stdout

    def commit(self, message: str, **files: str) -> str:
        for name, text in files.items():
            self.write(name, text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def blob(self, data: bytes) -> str:
        return self.git("hash-object", "-w", "--stdin", stdin=data)

    def tree(self, *entries: tuple[str, bytes, str]) -> str:
        """A tree, written as it is told, whatever git thinks of it."""
        data = b"".join(mode.encode() + b" " + name + b"\0" + bytes.fromhex(oid) for mode, name, oid in entries)
        return self.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=data)

    def commit_of(self, tree: str, *parents: str) -> str:
        args = [word for parent in parents for word in ("-p", parent)]
        return self.git("commit-tree", tree, *args, "-m", "made")


def worktree_tree(repo: Repo) -> str:
    repo.git("add", "-A")
    return repo.git("write-tree")


def bundle(repo: Repo, path: Path, refs: dict[str, str], prerequisites: Sequence[str], change: tuple[str, str]) -> Path:
    """A bundle as a capture writes it: a pack that is not thin, with the old sides of the change."""
    lines = repo.raw("rev-list", "--objects", *refs.values(), *(f"^{oid}" for oid in prerequisites))
    raw = repo.git("diff-tree", "-r", "-t", "--raw", "--no-renames", "--no-abbrev", *change).splitlines()
    gone = [side[2] for side in map(str.split, raw) if side[0] not in {":160000", ":000000"}]
    lines += "".join(f"{oid}\n" for oid in (*gone, change[0])).encode()
    return write_bundle(repo, path, refs, prerequisites, lines)


def write_bundle(repo: Repo, path: Path, refs: dict[str, str], prerequisites: Sequence[str], objects: bytes) -> Path:
    pack = repo.raw("pack-objects", "-q", "--stdout", "--delta-base-offset", stdin=objects)
    head = "# v2 git bundle\n" if repo.object_format == "sha1" else "# v3 git bundle\n@object-format=sha256\n"
    head += "".join(f"-{oid} \n" for oid in prerequisites) + "".join(f"{oid} {name}\n" for name, oid in refs.items())
    path.write_bytes(head.encode("utf-8", "surrogateescape") + b"\n" + pack)
    return path


def part_of(path: Path, **facts: object) -> Part:
    data = path.read_bytes()
    known = {
        "number": 0, "kind": "repository", "format": "sha1", "baseline": None, "base": None, "base_absent": False,
        "head": None, "branch": True, "state": "none", "size": len(data), "digest": bundle_digest(len(data), [data]),
    }  # fmt: skip
    return Part(**{**known, **facts})  # type: ignore[arg-type]


@dataclass
class Workspace:
    """A clone at ``base`` that an agent works in, and its copy-backs."""

    repo: Repo
    base: str
    baseline: str
    rounds: int = 0

    @classmethod
    def clone(cls, origin: Repo, path: Path) -> "Workspace":
        subprocess.run(["git", "clone", "-q", origin.path, path], env=_ENV, check=True)
        repo = Repo(path, origin.object_format)
        return cls(repo, repo.git("rev-parse", "HEAD"), repo.git("rev-parse", "HEAD^{tree}"))

    def capture(self, out: Path, *, with_base: bool = True, **more_refs: str) -> tuple[Part, Path]:
        repo = self.repo
        head, tree = repo.git("rev-parse", "HEAD"), worktree_tree(repo)
        snapshot = repo.git("commit-tree", tree, "-p", head, "-m", f"snapshot {self.rounds}")
        self.rounds += 1
        refs = {"refs/sandferry/snapshot": snapshot, "refs/sandferry/head": head}
        refs |= {f"refs/sandferry/{name.replace('__', '/')}": oid for name, oid in more_refs.items()}
        prerequisites = [self.base] if with_base else []
        path = bundle(repo, out, refs, prerequisites, (self.baseline, tree))
        facts = {"format": repo.object_format, "snapshot": snapshot, "tree": tree, "baseline": self.baseline}
        return part_of(path, **facts, base=self.base if with_base else None, head=head), path


@dataclass
class Bench:
    """A place for quarantines."""

    root: Path
    made: int = 0

    def take_in(
        self, part: Part, path: Path, host: HostRepository | None = None, seconds: float = 60, **limits: object
    ) -> Imported:
        self.made += 1
        return import_part(
            part,
            path,
            self.root / f"quarantine-{self.made}",
            limits=Limits(**limits),  # type: ignore[arg-type]
            deadline=Deadline.after(seconds),
            host=host,
        )

    def take_tree(self, repo: Repo, tree: str, objects: Sequence[str] = (), **limits: object) -> Imported:
        """Take in a snapshot without a history whose objects are ``objects``, or whatever git finds."""
        snapshot = repo.commit_of(tree)
        listed = "".join(f"{oid}\n" for oid in (snapshot, tree, *objects)).encode()
        path = self.root / f"hostile-{self.made}.bundle"
        write_bundle(repo, path, {"refs/sandferry/snapshot": snapshot}, [], listed)
        return self.take_in(part_of(path, snapshot=snapshot, tree=tree), path, **limits)  # type: ignore[arg-type]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
