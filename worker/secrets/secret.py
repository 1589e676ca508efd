"""A value that does not show itself."""

import hmac
from typing import NoReturn, final

REDACTED = "<redacted>"
"""What ``repr`` and ``str`` of a :class:`Secret` show."""


@final
class Secret:
    """Text that must be asked for by name: ``.reveal()``.

    It prints as ``<redacted>``, compares in constant time, and cannot be pickled, copied or turned into
    JSON, so it cannot ride in a message or a result by accident.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself, for the one place that uses it."""
        return self._value

    def __repr__(self) -> str:
        return REDACTED

    __str__ = __repr__

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not serialised")
