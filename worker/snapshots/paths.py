"""Paths out of a sandbox: bytes, relative, inside, and none that git would take for its own. Pure."""

MAX_PATH = 4096
"""Bytes of a path: Linux's PATH_MAX."""
MAX_COMPONENT = 255
"""Bytes of a component: Linux's NAME_MAX."""


class FormatError(ValueError):
    """What came out of a sandbox is not what was agreed. Names the field, never its value."""

    def __init__(self, field_name: str, reason: str) -> None:
        super().__init__(f"{field_name}: {reason}")
        self.field_name = field_name
        self.reason = reason


def checked_path(path: bytes, field_name: str) -> bytes:
    """``path`` itself, if it leads to something below the root it is relative to.

    :raises FormatError: absolute, empty, too long, with a NUL, or with a component that is empty, ``.``,
        ``..`` or ``.git`` in any case.
    """
    components = path.split(b"/")
    if not path or len(path) > MAX_PATH or b"\0" in path:
        raise FormatError(field_name, "malformed")
    if any(not part or part in {b".", b".."} or part.lower() == b".git" for part in components):
        raise FormatError(field_name, "unsafe_component")
    if any(len(part) > MAX_COMPONENT for part in components):
        raise FormatError(field_name, "too_long")
    return path


def split_z(data: bytes, field_name: str, limit: int) -> list[bytes]:
    """The words of a NUL-terminated list of at most ``limit`` bytes.

    :raises FormatError: it is longer, or its last word has no end.
    """
    if len(data) > limit:
        raise FormatError(field_name, "too_large")
    if data and not data.endswith(b"\0"):
        raise FormatError(field_name, "unterminated")
    return data.split(b"\0")[:-1]
