"""Wordings of a message: searched by the longest text each must contain, then by pattern.

A table has hundreds of wordings and a failure matches one or two. ``literal in text`` is a few nanoseconds a
character, a regular expression some hundred, so a pattern is tried only where its literal stands.
"""

import re
from functools import cache

_QUANTIFIERS = "?*{"
_BREAKS = "^$.+"
_GROUP_OR_CLASS = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|[()]", re.DOTALL)


class Shape:
    """Several wordings of one message, for normalised (lower-case) text.

    An alternative is a regular expression of bounded parts (linear time), in lower case.
    """

    __slots__ = ("_tests", "pattern")

    def __init__(self, *alternatives: str) -> None:
        self.pattern = "|".join(alternatives)
        self._tests = tuple((literal_of(each), None if _is_plain(each) else each) for each in alternatives)

    def search(self, text: str) -> bool:
        """Whether one of the wordings stands in ``text``."""
        for literal, alternative in self._tests:  # no generator: this is the innermost loop of all
            if literal in text and (alternative is None or compiled(alternative).search(text)):
                return True
        return False


def shape(*alternatives: str) -> Shape:
    """Several wordings of the same message."""
    return Shape(*alternatives)


@cache
def compiled(alternative: str) -> re.Pattern[str]:
    """The pattern of an alternative; compiled when its literal is first met, which most never are."""
    return re.compile(alternative, re.MULTILINE)


def _is_plain(alternative: str) -> bool:
    """Whether it is plain text, whose own literal says all (``re.escape`` escapes five signs needlessly)."""
    return re.escape(alternative) == re.sub(r"([ \-#&~])", r"\\\1", alternative)


def literal_of(pattern: str) -> str:
    """The longest text that every match of ``pattern`` contains; empty when there is none."""
    runs: list[str] = []
    run, place = "", 0
    while place < len(pattern):
        char = pattern[place]
        if char == "|":
            return ""
        if char in "[(" or (char == "\\" and pattern[place + 1].isalnum()):
            runs, run, place = [*runs, run], "", _behind(pattern, place)
        elif char in _QUANTIFIERS:
            optional = "}" if char == "{" else char
            runs, run, place = [*runs, run[:-1]], "", pattern.index(optional, place) + 1
        elif char in _BREAKS:
            runs, run, place = [*runs, run], "", place + 1
        else:
            place += char == "\\"
            run, place = run + pattern[place], place + 1
    runs.append(run)
    return max(runs, key=len)


def _behind(pattern: str, place: int) -> int:
    """The place behind the class, group or escape that begins at ``place``."""
    depth = 0
    for found in _GROUP_OR_CLASS.finditer(pattern, place):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth == 0:
            return found.end()
    raise re.error("unbalanced group", pattern, place)
