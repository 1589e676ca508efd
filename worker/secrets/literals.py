"""Every way in which a known secret may be written, and where they stand in a text."""

import base64
import html
import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

MIN_LITERAL = 4
"""Characters from which on a value is masked: shorter ones (`1`, `ok`) would destroy ordinary text."""
MIN_LINE = 8
"""Characters from which on a line of a multi-line secret is masked by itself."""
MIN_ENCODED = 6
"""Characters from which on an encoded form is masked."""


def forms(secret: str) -> set[str]:
    """The texts that give ``secret`` away: itself, its lines; these in base64, URL, HTML, hexadecimal and JSON form."""
    lines = {line.strip() for line in secret.splitlines()} if len(secret.splitlines()) > 1 else set()
    values = {secret, secret.strip()} | {line for line in lines if len(line) >= MIN_LINE}
    found: set[str] = set()
    for value in values:
        if len(value) >= MIN_LITERAL:
            found.add(value)
            found.update(form for form in _encoded(value) if len(form) >= MIN_ENCODED)
    return found


def _encoded(value: str) -> Iterator[str]:
    raw = value.encode(errors="surrogateescape")
    for shift in range(3):
        # Only the characters that no neighbour has a bit in, so that any surroundings show the same text.
        whole = base64.b64encode(b"\0" * shift + raw + b"\0\0")
        aligned = whole[-(-shift * 8 // 6) : (shift + len(raw)) * 8 // 6].decode()
        yield aligned
        yield aligned.translate(str.maketrans("+/", "-_"))
    for url in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield url
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), url)
    yield quote(quote(raw, safe=""), safe="")
    yield html.escape(value)
    yield from (raw.hex(), raw.hex().upper())
    for quoted in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        yield quoted
        yield quoted.replace("/", "\\/")  # PHP
        yield re.sub("[<>&]", lambda match: f"\\u{ord(match[0]):04x}", quoted)  # Go, Rails


class Literals:
    """A set of texts to be found, none of them empty: one pass of one alternation, longest first.

    A compiled alternation and not an automaton: a task knows a handful of secrets, and ``re`` walks them in
    C. The time is linear in the text for given secrets.
    """

    __slots__ = ("_firsts", "_longest", "_pattern", "_sorted")

    def __init__(self, texts: Iterable[str]) -> None:
        self._sorted = sorted(set(texts))
        self._firsts = {text[0] for text in self._sorted}
        self._longest = max(map(len, self._sorted), default=0)
        by_length = sorted(self._sorted, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, by_length))) if by_length else None

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where texts of the set stand; those that overlap are one span."""
        if self._pattern is None:
            return
        start = end = -1
        match = self._pattern.search(text)
        while match:
            if match.start() >= end:
                if start >= 0:
                    yield start, end
                start = match.start()
            end = max(end, match.end())
            match = self._pattern.search(text, match.start() + 1)
        if start >= 0:
            yield start, end

    def open_at(self, text: str) -> int:
        """Where the longest suffix of ``text`` begins that may be the beginning of a text of the set."""
        for start in range(max(0, len(text) - max(0, self._longest - 1)), len(text)):
            if text[start] in self._firsts and self._begins(text[start:]):
                return start
        return len(text)

    def _begins(self, text: str) -> bool:
        index = bisect_left(self._sorted, text)
        return index < len(self._sorted) and self._sorted[index].startswith(text)
