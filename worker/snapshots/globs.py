"""Globs of a request, in the words of git's pathspecs. Pure."""

from worker.failures.model import InvalidRequest

MAX_GLOB = 1024
"""Characters of one glob."""
MAX_GLOBS = 200
"""Globs of a request, of both kinds; git compares each of them with each file."""


def pathspecs(glob: str, field_name: str) -> tuple[str, str]:
    """The two patterns of ``glob`` for the magic ``top,glob``: for itself, and for all below it.

    As in a ``.gitignore``: one without a slash, but at its end, stands for a name at any depth, others start at
    the repository's root; ``*`` and ``?`` match no slash, ``**`` does.

    >>> pathspecs("*.log", "exclude"), pathspecs("/build/", "exclude")
    (('**/*.log', '**/*.log/**'), ('build', 'build/**'))

    :raises InvalidRequest: it is empty, too long, or leads outside.
    """
    name = glob.rstrip("/")
    if not name or {"\0", "\n"} & set(glob):
        raise InvalidRequest(field_name, "malformed")
    if len(glob) > MAX_GLOB:
        raise InvalidRequest(field_name, "too_long")
    if {"", ".", ".."} & set(name.removeprefix("/").split("/")):
        raise InvalidRequest(field_name, "unsafe_path")
    rooted = name.removeprefix("/") if "/" in name else f"**/{name}"
    return rooted, f"{rooted}/**"
