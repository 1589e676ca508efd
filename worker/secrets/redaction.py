"""The second fence: known secrets and what looks like one are masked in text that leaves the worker.

The first fence is that causes are built from structure. Order: the literals this task handled, in every
form they are usually written in; then the shapes of tokens, URL userinfo, secret query keys.
"""

import re
from collections.abc import Iterable
from typing import NoReturn

from worker.secrets.literals import Literals, forms
from worker.secrets.shapes import MASK, redact_shapes
from worker.secrets.streams import LiteralStage, RedactedStream

__all__ = ["MASK", "TAIL_LIMIT", "Redactor", "strip_controls", "tail"]

TAIL_LIMIT = 8192
"""Bytes of a failed command's output that are kept for operators (design, section 4)."""
MIN_PARTIAL = 8
"""Characters from which on the beginning of a secret at a cut end is masked."""

_ESCAPES = re.compile(
    r"\x1b(?:\][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # operating system commands: titles, links, clipboard
    r"|[PX^_][^\x1b\n]*(?:\x1b\\)?"  # device control and other strings
    r"|\[[0-?]*[ -/]*[@-~]?"  # colours, cursor
    r"|[ -/]*[0-~]?)"
)
# C0 but for tab and line end, DEL, C1, and characters that nobody sees: they would split a secret unseen.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


def strip_controls(text: str) -> str:
    """``text`` without terminal escapes and control characters; only tabs and newlines stay."""
    text = _ESCAPES.sub("", text)
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


class Redactor:
    """Masks ``secrets`` and everything that looks like one, as ``***``, in linear time.

    A secret shorter than four characters is ignored: masking it would destroy ordinary text.
    """

    __slots__ = ("_literals",)

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._literals = Literals(form for secret in secrets for form in forms(secret))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Redactor knows secrets and is not serialised")

    def redact(self, text: str) -> str:
        """``text`` with every secret masked."""
        return redact_shapes(self._redact_literals(text))

    def stream(self) -> RedactedStream:
        """A redaction of text that arrives in pieces; equal to :meth:`redact` of the whole.

        It differs only where more than 64 KiB wait for the end of one shape: these are masked whole.
        """
        return RedactedStream(self._literals)

    def mask_cut_end(self, text: str) -> str:
        """``text``, redacted before, with the beginning of a secret at its very end masked.

        A command that was stopped in the middle of its output may have been so in the middle of a secret.
        """
        start = self._literals.open_at(text)
        return text[:start] + MASK if len(text) - start >= MIN_PARTIAL else text

    def _redact_literals(self, text: str) -> str:
        stage = LiteralStage(self._literals)
        return stage.feed(text) + stage.flush()


def tail(output: str | bytes, redactor: Redactor, limit: int = TAIL_LIMIT) -> str:
    """The last ``limit`` bytes (UTF-8) of a command's output that an operator may read.

    Redacted, stripped of terminal control, redacted again (an escape may split a token), and only then cut,
    between characters.
    """
    text = output.decode(errors="replace") if isinstance(output, bytes) else output
    text = redactor.redact(strip_controls(redactor.redact(text)))
    encoded = redactor.mask_cut_end(text).encode(errors="replace")
    return encoded[max(0, len(encoded) - limit) :].decode(errors="ignore")
