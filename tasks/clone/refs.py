"""Names of branches and tags, by the rules of ``git check-ref-format``. Pure."""

import re

NAME_MAX = 244
"""Bytes in UTF-8. A loose ref is a file whose lock adds ``.lock``; a file name holds 255 bytes."""

# Control characters, space, and what revision syntax uses: git-check-ref-format(1), rules 4, 5 and 10.
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")


def valid_name(name: str) -> bool:
    """Whether ``refs/heads/<name>`` is a ref git accepts, and ``name`` is no option and not too long."""
    return not name.startswith("-") and storable(name)


def storable(name: str) -> bool:
    """Whether git accepts ``refs/heads/<name>`` and a file system holds it; a branch may start with a dash."""
    return _fits(name) and well_formed(name)


def well_formed(name: str) -> bool:
    """Whether git accepts ``refs/heads/<name>``."""
    return (
        name != ""
        and _FORBIDDEN.search(name) is None
        and not name.endswith(".")
        and all(part and not part.startswith(".") and not part.endswith(".lock") for part in name.split("/"))
    )


def _fits(name: str) -> bool:
    try:
        return len(name.encode()) <= NAME_MAX
    except UnicodeEncodeError:
        return False
