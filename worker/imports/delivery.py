"""Into a host repository: the run's own refs, always new ones, and on request a branch.

``refs/sandferry/<run>/<round>/...`` holds what one copy-back brought: ``snapshot``, ``baseline``, ``head``,
``heads/...``, ``tags/...``, ``stash/...``, and those of further parts below ``parts/<number>/``. They are
created together or not at all and never move; the next copy-back of the run makes the next round.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from worker.failures.model import Category, InvalidRequest
from worker.imports.host_git import HostGit
from worker.imports.intake import Imported
from worker.imports.limits import corrupt
from worker.imports.refnames import valid_ref
from worker.imports.repository import HostRepository

STAGE = "deliver"
TRIES = 5
"""How often a ref that somebody else moved meanwhile is tried again."""
PAUSE = 0.05
"""Seconds before the first of these, longer each time: a lock of git's files backend lasts milliseconds."""

_RUN = re.compile(r"[A-Za-z0-9_.-]{1,100}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """The refs of a round, by their full names in the host repository, and the parts that do not fit there."""

    round: int
    refs: Mapping[str, str]
    left_out: tuple[int, ...] = ()


def run_refs(run_id: str) -> str:
    """``refs/sandferry/<run>/``.

    :raises InvalidRequest: git has no ref of such a name.
    """
    prefix = f"refs/sandferry/{run_id}"
    if not _RUN.fullmatch(run_id) or not valid_ref(prefix.encode()):
        raise InvalidRequest("run_id", "malformed")
    return f"{prefix}/"


def deliver_refs(host: HostRepository, parts: Sequence[Imported], run_id: str) -> Delivered:
    """Put the objects and refs of ``parts`` into ``host``. The same parts again find their round.

    A part that lacks its base here, or has the other object format, is left out (it is in the artifact).

    :raises OperationFailed: stage ``deliver``: ``bundle_prerequisites`` (part 0 does not fit),
        ``ref_moved`` (others kept winning).
    """
    prefix = run_refs(run_id)
    git = host.git(parts[0].git.limits, parts[0].git.deadline)
    object_format = host.object_format(git.limits, git.deadline)
    fitting = [part for part in parts if part.whole and part.header.object_format == object_format]
    if parts[0] not in fitting:
        raise corrupt(STAGE, "bundle_prerequisites")
    for part in fitting:
        give_packs(part.git, git)
    wanted = {name: oid for part in fitting for name, oid in _names(part).items()}
    left_out = tuple(part.part.number for part in parts if part not in fitting)
    for attempt in range(TRIES):
        latest, refs = _latest_round(git, prefix)
        if refs == wanted:
            return _delivered(prefix, latest, wanted, left_out)
        lines = [f"create {prefix}{latest + 1}/{name}\0{oid}\0" for name, oid in wanted.items()]
        if update_refs(git, lines):
            return _delivered(prefix, latest + 1, wanted, left_out)
        git.deadline.wait(PAUSE * (attempt + 1))
    raise git.failure(STAGE, category=Category.OPERATION_IN_PROGRESS, reason="ref_moved")


def give_packs(quarantine: HostGit, git: HostGit) -> None:
    """Copy the packs of a quarantine into a repository, by git's own hand."""
    for pack in sorted((quarantine.git_dir / "objects" / "pack").glob("*.pack")):
        with pack.open("rb", buffering=0) as file:
            git.ask("index-pack", "--stdin", "--threads=1", stage=STAGE, stdin=file)


def update_refs(git: HostGit, lines: Sequence[str]) -> bool:
    """Change refs, all of them or none; ``False`` when one was not as expected. Lines as of ``update-ref -z``."""
    text = "".join(lines).encode("utf-8", "surrogateescape")
    done = git.run("update-ref", "--create-reflog", "-z", "--stdin", stage=STAGE, stdin=text)
    if done.exit_code and b"cannot lock ref" not in done.stderr:
        raise git.failure(STAGE, exit_code=done.exit_code, text=done.stderr.decode(errors="replace"))
    return done.exit_code == 0


def _names(imported: Imported) -> dict[str, str]:
    """The refs of a part as they are called below a round."""
    number = imported.part.number
    below = f"parts/{number}/" if number else ""
    return {below + name.removeprefix("refs/sandferry/"): oid for name, oid in imported.header.refs.items()}


def _latest_round(git: HostGit, prefix: str) -> tuple[int, dict[str, str]]:
    """The number of the last round, 0 for none, and its refs."""
    listed = git.ask("for-each-ref", "--format=%(objectname) %(refname)", prefix, stage=STAGE)
    rounds: dict[int, dict[str, str]] = {0: {}}
    for line in listed.decode("utf-8", "surrogateescape").splitlines():
        oid, _, name = line.partition(" ")
        number, _, rest = name.removeprefix(prefix).partition("/")
        if number.isdecimal():
            rounds.setdefault(int(number), {})[rest] = oid
    return max(rounds.items())


def _delivered(prefix: str, number: int, names: Mapping[str, str], left_out: tuple[int, ...]) -> Delivered:
    refs = {f"{prefix}{number}/{name}": oid for name, oid in names.items()}
    return Delivered(round=number, refs=refs, left_out=left_out)
