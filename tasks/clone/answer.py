"""Reads what the clone script says. It comes out of a sandbox, so only what fits is believed. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tasks.clone.refs import storable
from tasks.clone.repository import Repository

STAGES = frozenset({"version", "layout", "clone", "fetch", "checkout", "submodules", "lfs"}) | frozenset(
    {"verify", "baseline", "rename", "link"}
)
"""Steps of the script, in their order."""

PROGRAMS = frozenset({"git", "git_lfs", "mkdir", "mv", "ln", "sh"})
"""Whose exit the script reports."""

REFUSALS = frozenset(
    {
        "program_missing",
        "git_too_old",
        "lfs_missing",
        "layout_invalid",
        "not_a_commit",
        "not_a_repository",
        "malformed_answer",
        "submodule_invalid",
        "symlink",
        "owner_directory",
        "destination_taken",
        "ref_missing",
        "commit_missing",
        "default_branch_missing",
        "head_mismatch",
        "checkout_incomplete",
        "borrowed_objects",
        "promisor_object",
        "credential_persisted",
    }
)
"""Why the script itself refuses to go on."""

_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NUMBER = re.compile(r"[0-9]{1,12}")
_HEAD = re.compile(r"refs/(?:heads|tags)/(.+)")
_ASKED = re.compile(
    r"could not read (?:Username|Password) for '(?P<git>[a-z]+://[^/']{1,300})"
    r"|[Gg]it credentials for (?P<lfs>[a-z]+://[^/\s]{1,300})[^\n]{0,300} not found"
)
"""What git and git-lfs say when nobody gives them a credential; they name the server that wants one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A finished clone. ``commit`` and ``ref`` are ``None`` where there is none; ``bytes`` is on disk."""

    commit: str | None
    ref: str | None
    tree: str
    bytes: int
    adopted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A clone that ended early: at ``stage``, by the exit of ``program``, or refused for ``reason``."""

    stage: str
    program: str
    exit_code: int | None
    reason: str | None


def delivered(stdout: bytes) -> Delivered | None:
    """The clone that the script says it made, or ``None`` if it does not say so in full."""
    said = _lines(stdout)
    commit, ref = said.get("commit", ""), said.get("ref", "")
    tree, kibibytes = said.get("tree", ""), said.get("kibibytes", "")
    fits = (
        said.get("done") == "yes"
        and said.get("adopted") in {"yes", "no"}
        and (commit == "none" or _ID.fullmatch(commit))
        and (ref == "none" or _is_ref(ref))
        and _ID.fullmatch(tree)
        and _NUMBER.fullmatch(kibibytes)
    )
    if not fits:
        return None
    return Delivered(
        commit=None if commit == "none" else commit,
        ref=None if ref == "none" else ref,
        tree=tree,
        bytes=int(kibibytes) * 1024,
        adopted=said["adopted"] == "yes",
    )


def broken(stdout: bytes) -> Broken:
    """How far the script came, and why it ended if it knows."""
    said = _lines(stdout)
    stage, program, reason = said.get("stage", ""), said.get("program", ""), said.get("refused", "")
    code = said.get("exit", "")
    return Broken(
        stage=stage if stage in STAGES else "clone",
        program=program if program in PROGRAMS else "git",
        exit_code=int(code) if re.fullmatch(r"[0-9]{1,3}", code) else None,
        reason=reason if reason in REFUSALS else None,
    )


def asked_elsewhere(text: str, repository: Repository) -> bool:
    """Whether git was asked for a credential, and only by servers that are not the repository's own."""
    asked = [found["git"] or found["lfs"] for found in _ASKED.finditer(text)]
    origins = {re.sub("//.*@", "//", url).lower() for url in asked}
    return bool(origins) and repository.origin not in origins


def _lines(stdout: bytes) -> Mapping[str, str]:
    """The last word on each key. Branch names may hold any letters, hence UTF-8."""
    text = stdout.decode("utf-8", errors="replace")
    return {key: value for line in text.split("\n") for key, _, value in [line.partition(" ")]}


def _is_ref(ref: str) -> bool:
    match = _HEAD.fullmatch(ref)
    return match is not None and storable(match[1])
