"""The cause: the one line about a failure that may leave the worker.

Grammar: ``code: key=value key=value[; code: key=value]``, ASCII, at most 512 characters. Values are members of
the closed lists of :mod:`worker.failures.vocabulary` or small integers, so that nothing a sandbox, a server or a
user wrote can pass: neither a path, nor a message, nor a token.
"""

import re
from dataclasses import dataclass, replace
from typing import Self

from worker.failures.vocabulary import CODES, INTEGERS, KEYS, MEMBERS, OTHER, short_name

MAX_LENGTH = 512
"""Characters of a line; room for two full parts of the words we know."""

Value = bool | int | str
"""``True`` and ``False`` are written as words."""

_PART = re.compile(r"(?P<code>[a-z][a-z0-9_]{0,63})(?:: (?P<fields>[ -~]+))?")
_FIELD = re.compile(r"(?P<key>[a-z_]{1,64})=(?P<value>[A-Za-z0-9_]{1,64})")
_INTEGER = re.compile(r"0|[1-9][0-9]{0,3}")
_CLASSES = frozenset({"name", "exception"})
_ORDER = {key: place for place, key in enumerate(KEYS)}


@dataclass(frozen=True, slots=True)
class Cause:
    """A code, its fields in the order of ``KEYS``, and at most one cause below it.

    One that breaks the grammar cannot be made: the constructor raises ``ValueError``. Code that reports a
    failure uses :meth:`of`, which mends what it is given.
    """

    code: str
    fields: tuple[tuple[str, Value], ...] = ()
    nested: "Cause | None" = None

    def __post_init__(self) -> None:
        places = [_ORDER.get(key, -1) for key, _ in self.fields]
        if self.code not in CODES:
            raise ValueError("cause: unknown code")
        if -1 in places or places != sorted(set(places)):
            raise ValueError("cause: keys must be known, ordered and unique")
        if not all(_is_member(key, value) for key, value in self.fields):
            raise ValueError("cause: a value is no member of its list")
        if self.nested is not None and self.nested.nested is not None:
            raise ValueError("cause: at most two parts")
        if len(str(self)) > MAX_LENGTH:
            raise ValueError("cause: too long")

    def __str__(self) -> str:
        fields = " ".join(f"{key}={value}" for key, value in self.fields)
        line = f"{self.code}: {fields}" if fields else self.code
        return line if self.nested is None else f"{line}; {self.nested}"

    @classmethod
    def of(cls, code: str, /, nested: "Cause | None" = None, **fields: Value | None) -> Self:
        """Make a cause of whatever is known.

        ``None`` is left out, an unknown value becomes ``other``, a qualified class name its last part. A cause
        below ``nested`` is dropped, and what passes 512 characters is cut: ``nested``, then fields from the end.

        :raises ValueError: a key is not one of ``KEYS`` (a mistake in our code, not in the data).
        """
        if unknown := fields.keys() - _ORDER.keys():
            raise ValueError(f"cause: unknown key {min(unknown)}")
        known = tuple((key, _member(key, value)) for key in KEYS if (value := fields.get(key)) is not None)
        below = None if nested is None else replace(nested, nested=None)
        return cls._fitted(code if code in CODES else OTHER, known, below)

    @classmethod
    def _fitted(cls, code: str, fields: tuple[tuple[str, Value], ...], nested: "Cause | None") -> Self:
        """The longest cause that fits; a code alone always does."""
        try:
            return cls(code, fields, nested)
        except ValueError:
            return cls._fitted(code, fields if nested else fields[:-1], None)

    @classmethod
    def parse(cls, line: str) -> Self | None:
        """Read a line. What does not match is dropped whole, never mended; linear in 512 characters."""
        if len(line) > MAX_LENGTH or not line.isascii():
            return None
        parts = line.split("; ")
        if len(parts) > 2:
            return None
        try:
            below = cls._part(parts[1]) if len(parts) == 2 else None
            return cls._part(parts[0], below)
        except ValueError:
            return None

    @classmethod
    def _part(cls, text: str, nested: "Cause | None" = None) -> Self:
        """Read ``code: key=value key=value``."""
        found = _PART.fullmatch(text)
        if found is None:
            raise ValueError("cause: malformed part")
        pairs = found["fields"].split(" ") if found["fields"] else []
        return cls(found["code"], tuple(_pair(pair) for pair in pairs), nested)


def _pair(text: str) -> tuple[str, Value]:
    """Read ``key=value``."""
    found = _FIELD.fullmatch(text)
    if found is None:
        raise ValueError("cause: malformed field")
    key, value = found["key"], found["value"]
    return key, int(value) if key in INTEGERS and _INTEGER.fullmatch(value) else value


def _is_member(key: str, value: object) -> bool:
    """Whether ``key`` may hold ``value``. A boolean is no integer here."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value in INTEGERS.get(key, ())
    return value == OTHER or value in MEMBERS.get(key, ())


def _member(key: str, value: Value) -> Value:
    """``value`` as its key holds it, else ``other``."""
    if isinstance(value, bool):
        value = str(value).lower()
    elif isinstance(value, str):
        value = str(value)  # a StrEnum member is stored as the plain word
    if key in _CLASSES and isinstance(value, str):
        value = short_name(value)
    return value if _is_member(key, value) else OTHER
