"""What a capture leaves in its ``out`` directory, read strictly. Pure.

Everything here was written in a sandbox and is hostile: what does not match is refused whole, by a
:class:`FormatError` that names the field and never shows its value.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from worker.snapshots.paths import FormatError, checked_path, split_z

MAX_TEXT = 1024 * 1024
"""Bytes of ``capture.txt``."""
MAX_PARTS = 1000
"""Parts of one capture; their lines fit :data:`MAX_TEXT` three times over."""
MAX_PATH_FILE = 4096
"""Bytes of ``part-<N>.path``: Linux's PATH_MAX."""
MAX_EMPTY = 100_000
"""Entries of ``empty.z``; further empty directories count as ``empty_directory``."""
MAX_OMITTED = 10_000
"""Entries of ``omitted.z``; the counts in ``capture.txt`` go on."""
MAX_LIST = 64 * 1024 * 1024
"""Bytes of ``empty.z`` and of ``omitted.z``."""

OMITTED = (
    "unreadable",
    "vanished",
    "fifo",
    "socket",
    "device",
    "special_mode",
    "hardlink",
    "xattr",
    "too_large",
    "excluded",
    "ignored",
    "refused_name",
    "broken_repository",
    "unborn_nested",
    "absent_submodule",
    "too_many_parts",
    "missing_object",
    "history",
    "reflog_only",
    "other_ref",
    "outside",
    "empty_directory",
    "empty_directory_unnameable",
)
"""Kinds of what a capture does not hold, in the order of their lines. The one place to extend.

``special_mode``, ``hardlink`` and ``xattr`` lose an attribute, not content. ``unborn_nested``: a nested
repository without a commit; its files are there, as a part without a head. ``refused_name``: git refuses it
(``.git`` in another case). ``broken_repository``: a ``.git`` that git does not open; the files beside it are there, and
what can be read of it. ``history``: commits of a shallow nested repository. ``outside``: beside the repository, where
the agent starts, and linked work trees elsewhere. ``reflog_only`` and ``other_ref`` count commits and refs,
``missing_object`` refs whose objects are gone.
"""
NO_LOSS = frozenset({"excluded", "ignored", "absent_submodule", "unborn_nested", "reflog_only"})
"""Kinds that take nothing from the work: asked for by the request, kept in another way, or rewritten on purpose."""

STATES = ("none", "rebase", "merge", "cherry_pick", "revert", "bisect", "am")
"""Operations of git that a repository can be in the middle of."""
_HEX = {"sha1": 40, "sha256": 64}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One repository of a capture. Ids are lower-case hex of ``format``'s length; ``size`` is bytes.

    ``base`` is the request's base commit if the sandbox has it; ``base_absent`` says that it was asked for
    and is not there. ``branch``: HEAD is a branch. ``digest`` is that of :mod:`worker.snapshots.digest`.
    """

    number: int
    kind: str
    format: str
    snapshot: str
    tree: str
    baseline: str | None
    base: str | None
    base_absent: bool
    head: str | None
    branch: bool
    state: str
    size: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureText:
    """``capture.txt``. ``omitted`` counts by kind, ``ignored`` ignored files not taken, ``empty`` entries."""

    quiesce: str
    parts: tuple[Part, ...]
    omitted: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    ignored: int = 0
    empty: int = 0


_NUMBER = "0|[1-9][0-9]{0,14}"
_ID = "[0-9a-f]{40}|[0-9a-f]{64}"
_PART = re.compile(
    rf"part (?P<number>{_NUMBER}) kind=(?P<kind>repository|directory|nested|submodule)"
    rf" format=(?P<format>sha1|sha256) snapshot=(?P<snapshot>{_ID}) tree=(?P<tree>{_ID})"
    rf" baseline=(?P<baseline>{_ID}|none) base=(?P<base>{_ID}|absent|none) head=(?P<head>{_ID}|none)"
    rf" branch=(?P<branch>[01]) state=(?P<state>{'|'.join(STATES)}) bundle=(?P<size>{_NUMBER})"
    r" digest=(?P<digest>[0-9a-f]{64})"
)
_TEXT = re.compile(
    r"sandferry-capture 1\nquiesce (?P<quiesce>none|pause)\n(?P<parts>(?:part [^\n]{1,700}\n)+)"
    rf"(?P<omitted>(?:omitted [a-z_]{{1,40}} [0-9]{{1,15}}\n){{0,40}})ignored (?P<ignored>{_NUMBER})\n"
    rf"empty (?P<empty>{_NUMBER})\nend\n"
)
_OMITTED = re.compile(r"omitted ([a-z_]{1,40}) ([1-9][0-9]{0,14})")


def parse_capture(data: bytes) -> CaptureText:
    """Read ``capture.txt``.

    :raises FormatError: it is not one, or its lines contradict each other.
    """
    if len(data) > MAX_TEXT or not data.isascii():
        raise FormatError("capture", "too_large" if data.isascii() else "malformed")
    found = _TEXT.fullmatch(data.decode("ascii"))
    if found is None:
        raise FormatError("capture", "malformed")
    lines = found["parts"].splitlines()
    if len(lines) > MAX_PARTS:
        raise FormatError("part", "too_many")
    empty = int(found["empty"])
    if empty > MAX_EMPTY:
        raise FormatError("empty", "too_many")
    return CaptureText(
        quiesce=found["quiesce"],
        parts=tuple(_part(number, line) for number, line in enumerate(lines)),
        omitted=_counts(found["omitted"].splitlines()),
        ignored=int(found["ignored"]),
        empty=empty,
    )


def parse_path(data: bytes, number: int) -> bytes:
    """Read ``part-<number>.path``: where the part lies, relative to the workspace; empty for part 0 alone.

    :raises FormatError: it leads outside, or is no such path.
    """
    if number == 0:
        if data:
            raise FormatError("path", "not_empty")
        return data
    return checked_path(data, "path")


def parse_empty(data: bytes, count: int) -> tuple[bytes, ...]:
    """Read ``empty.z``: ``count`` different paths of empty directories.

    :raises FormatError: as :func:`parse_path`, and when there are not ``count``.
    """
    paths = split_z(data, "empty", MAX_LIST)
    if len(paths) != count or len(set(paths)) != count:
        raise FormatError("empty", "count")
    return tuple(checked_path(path, "empty") for path in paths)


def parse_omitted(data: bytes, counts: Mapping[str, int]) -> tuple[tuple[str, bytes], ...]:
    """Read ``omitted.z``: pairs of kind and name, for an operator's eyes only.

    A name is a path, a ref or a commit id, at most 4096 bytes of anything but NUL.

    :raises FormatError: more of a kind than ``counts`` has, more than :data:`MAX_OMITTED`, an unknown kind.
    """
    words = split_z(data, "omitted", MAX_LIST)
    if len(words) % 2 or len(words) > 2 * MAX_OMITTED:
        raise FormatError("omitted", "count")
    left = dict(counts)
    pairs = []
    for kind, name in zip(words[::2], words[1::2], strict=True):
        word = kind.decode("ascii", errors="replace")
        if not left.get(word) or not 0 < len(name) <= MAX_PATH_FILE:
            raise FormatError("omitted", "malformed")
        left[word] -= 1
        pairs.append((word, name))
    return tuple(pairs)


def _part(number: int, line: str) -> Part:
    found = _PART.fullmatch(line)
    if found is None or int(found["number"]) != number:
        raise FormatError("part", "malformed")
    kinds = ("nested", "submodule") if number else ("repository", "directory")
    ids = [found[key] for key in ("snapshot", "tree", "baseline", "base", "head")]
    if found["kind"] not in kinds:
        raise FormatError("kind", "misplaced")
    if any(len(value) != _HEX[found["format"]] for value in ids if value not in {"none", "absent"}):
        raise FormatError("format", "length")
    if found["kind"] == "directory" and (found["head"], found["branch"], found["state"]) != ("none", "0", "none"):
        raise FormatError("kind", "contradiction")
    if found["size"] == "0":
        raise FormatError("bundle", "empty")
    return Part(
        number=number,
        kind=found["kind"],
        format=found["format"],
        snapshot=found["snapshot"],
        tree=found["tree"],
        baseline=_known(found["baseline"]),
        base=_known(found["base"]),
        base_absent=found["base"] == "absent",
        head=_known(found["head"]),
        branch=found["branch"] == "1",
        state=found["state"],
        size=int(found["size"]),
        digest=found["digest"],
    )


def _known(value: str) -> str | None:
    return None if value in {"none", "absent"} else value


def _counts(lines: list[str]) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    places = []
    for line in lines:
        found = _OMITTED.fullmatch(line)
        if found is None or found[1] not in OMITTED:
            raise FormatError("omitted", "malformed")
        counts[found[1]] = int(found[2])
        places.append(OMITTED.index(found[1]))
    if places != sorted(set(places)):
        raise FormatError("omitted", "order")
    return MappingProxyType(counts)
