"""Where a symbolic link may lead. Pure."""

MAX_TARGET = 4096
"""Bytes of a target: Linux's PATH_MAX."""


def safe_link(target: bytes, depth: int) -> bool:
    """Whether a link in a directory ``depth`` levels below the root stays below the root, and out of ``.git``.

    ``..`` counts only at the start of a target. Behind a name it may undo another link, whose own length
    nobody knows: ``a/..`` is the root's parent if ``a`` leads to the root.
    """
    parts = [part for part in target.split(b"/") if part not in {b"", b"."}]
    up = next((place for place, part in enumerate(parts) if part != b".."), len(parts))
    return (
        0 < len(target) <= MAX_TARGET
        and not target.startswith(b"/")
        and b"\0" not in target
        and up <= depth
        and b".." not in parts[up:]
        and not any(_git_like(part) for part in parts)
    )


def _git_like(part: bytes) -> bool:
    """A name that some file system takes for ``.git``; of trees, git's own fsck checks these and more."""
    name = part.lower().rstrip(b" .").partition(b":")[0]
    return name in {b".git", b"git~1"} or b".git" in _without_ignorable(name).split(b"/")


def _without_ignorable(name: bytes) -> bytes:
    """Without the code points that HFS+ ignores (git's ``is_hfs_dotgit``)."""
    text = name.decode("utf-8", "surrogateescape")
    kept = "".join(letter for letter in text if not (_between(letter) or letter == "\ufeff"))
    return kept.encode("utf-8", "surrogateescape")


def _between(letter: str) -> bool:
    return "\u200c" <= letter <= "\u200f" or "\u202a" <= letter <= "\u202e" or "\u206a" <= letter <= "\u206f"
