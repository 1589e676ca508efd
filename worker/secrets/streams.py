"""Redaction of text that arrives in pieces. What comes out does not depend on where it was cut."""

import re
from typing import Protocol

from worker.secrets.literals import Literals
from worker.secrets.shapes import MASK, PEM_END, open_pem, open_shape, redact_shapes

HELD_LIMIT = 64 * 1024
"""Characters that may wait for the end of something that looks like a secret; a longer one is masked."""

_LINE_END = re.compile("\n")
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
    """Masks what looks like a secret; holds a line back from the first sign of one on."""

    __slots__ = ("_held", "_until")

    def __init__(self) -> None:
        self._held = ""
        self._until: re.Pattern[str] | None = None
        """While set, text is dropped until this is found: it belongs to a secret that was masked."""

    def feed(self, text: str) -> str:
        """Take a piece; return what can be said for certain."""
        self._held += text
        if self._until and not self._resume(self._until):
            return ""
        upto = open_shape(self._held)
        out, self._held = redact_shapes(self._held[:upto]), self._held[upto:]
        if len(self._held) <= HELD_LIMIT:
            return out
        self._until = PEM_END if open_pem(self._held) < len(self._held) else _LINE_END
        self._resume(self._until)
        return out + MASK

    def flush(self) -> str:
        """Return what is still held back."""
        out = "" if self._until else redact_shapes(self._held)
        self._held, self._until = "", None
        return out

    def _resume(self, until: re.Pattern[str]) -> bool:
        """Whether the secret has ended; drops what belongs to it."""
        end = until.search(self._held)
        if end is None:
            self._held = self._held[-_END_MARK:]
            return False
        self._held = self._held[end.end() if until is PEM_END else end.start() :]
        self._until = None
        return True


class RedactedStream:
    """Text in pieces, redacted: :meth:`feed` each piece, then :meth:`flush` once."""

    __slots__ = ("_stages",)

    def __init__(self, literals: Literals) -> None:
        self._stages: tuple[Stage, Stage] = (LiteralStage(literals), ShapeStage())

    def feed(self, text: str) -> str:
        """Take a piece; return the redacted text that no further piece can change."""
        first, second = self._stages
        return second.feed(first.feed(text))

    def flush(self) -> str:
        """Return the rest at the end of the text."""
        first, second = self._stages
        return second.feed(first.flush()) + second.flush()
