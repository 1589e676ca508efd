"""Redaction of text that arrives in pieces. What comes out does not depend on where it was cut."""

from typing import Protocol

from worker.secrets.literals import Literals
from worker.secrets.shapes import BLOCKS, LINES, MASK, Rules

HELD_LIMIT = 64 * 1024
"""Characters that may wait for the end of something that looks like a secret; a longer one is masked."""

_END_MARK = 80
"""Characters in which the end of a PEM block fits."""


class Stage(Protocol):
    """A filter of text in pieces."""

    def feed(self, text: str) -> str:
        """Take a piece; return what can be said for certain."""

    def flush(self) -> str:
        """Return what is still held back."""


class LiteralStage:
    """Masks known texts; holds back the longest suffix that may begin one, and no more."""

    __slots__ = ("_covered", "_held", "_literals")

    def __init__(self, literals: Literals) -> None:
        self._literals = literals
        self._held = ""
        self._covered = 0
        """Characters at the head of ``_held`` whose mask has been given out already."""

    def feed(self, text: str) -> str:
        """Take a piece; return what can be said for certain."""
        self._held += text
        return self._advance(self._literals.open_at(self._held))

    def flush(self) -> str:
        """Return what is still held back."""
        return self._advance(len(self._held))

    def _advance(self, upto: int) -> str:
        text, done = self._held, self._covered
        out: list[str] = []
        for start, end in self._literals.spans(text):
            if start >= upto:
                break
            if start >= done:
                out += text[done:start], MASK
            done = max(done, end)
        out.append(text[done:upto])
        self._held, self._covered = text[upto:], max(0, done - upto)
        return "".join(out)


class ShapeStage:
    """Masks what looks like a secret; holds text back from the first sign of one on."""

    __slots__ = ("_before", "_dropping", "_held", "_rules")

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._held = ""
        self._before = ""
        """The last character given out: rules look back by one."""
        self._dropping = False
        """While set, text belongs to a secret that was masked already."""

    def feed(self, text: str) -> str:
        """Take a piece; return what can be said for certain."""
        self._held += text
        self._drop()
        if self._dropping:
            return ""
        upto = self._rules.open_at(self._held)
        out, self._held = self._redact(self._held[:upto]), self._held[upto:]
        if len(self._held) <= HELD_LIMIT:
            return out
        self._dropping = True
        self._drop()
        self._before = MASK[-1]
        return out + MASK

    def flush(self) -> str:
        """Return what is still held back."""
        out = "" if self._dropping else self._redact(self._held)
        self._held, self._dropping = "", False
        return out

    def _redact(self, text: str) -> str:
        out = self._rules.redact(self._before + text)[len(self._before) :]
        self._before = out[-1:] or self._before
        return out

    def _drop(self) -> None:
        """Forget what belongs to a masked secret; its end may be cut, so a little of it stays."""
        if not self._dropping:
            return
        end = self._rules.end.search(self._held)
        self._held = self._held[end.end() :] if end else self._held[-_END_MARK:]
        self._dropping = end is None


class RedactedStream:
    """Text in pieces, redacted: :meth:`feed` each piece, then :meth:`flush` once."""

    __slots__ = ("_stages",)

    def __init__(self, literals: Literals) -> None:
        self._stages: tuple[Stage, ...] = (LiteralStage(literals), ShapeStage(BLOCKS), ShapeStage(LINES))

    def feed(self, text: str) -> str:
        """Take a piece; return the redacted text that no further piece can change."""
        for stage in self._stages:
            text = stage.feed(text)
        return text

    def flush(self) -> str:
        """Return the rest at the end of the text."""
        text = ""
        for stage in self._stages:
            text = stage.feed(text) + stage.flush()
        return text
