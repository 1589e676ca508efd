"""Names of refs, as ``git check-ref-format`` judges them. Pure."""

import re

MAX_NAME = 1024
"""Bytes of a name."""
MAX_COMPONENT = 250
"""Bytes of a component: NAME_MAX less ``.lock``, which git adds."""

_FORBIDDEN = re.compile(rb"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")


def valid_ref(name: bytes) -> bool:
    """Whether git takes ``name``: two components at least, none with a dot first or ``.lock`` last."""
    components = name.split(b"/")
    return (
        len(components) > 1
        and len(name) <= MAX_NAME
        and not _FORBIDDEN.search(name)
        and not name.endswith(b".")
        and all(
            0 < len(part) <= MAX_COMPONENT and not part.startswith(b".") and not part.endswith(b".lock")
            for part in components
        )
    )


def clashing(names: frozenset[str]) -> bool:
    """Whether one name is a directory of another: such refs cannot exist side by side."""
    return any(name[: at.start()] in names for name in names for at in re.finditer("/", name))
