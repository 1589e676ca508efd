"""A private text made ready for rules: bounded, lower-cased, without colours, progress and names.

Names (URLs, clone targets, hashes) are masked so that a repository called ``early eof`` or a commit that holds
``503`` cannot fake a message. Every step is linear; every pattern here is bounded or cannot back-track.
"""

import re

from worker.failures.translations import in_english

KEPT = 64 * 1024
"""Characters that are looked at: the first and the last 32 KiB. The root of a failure stands near one of them."""

_ESCAPED = re.compile(r"\\u001b|\\{1,4}[nrt\"']|&#xa;", re.IGNORECASE)
_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\n]{0,2048}(?:\x07|\x1b\\)?"  # OSC: titles, links
    r"|\x1b[ -/]{0,8}[0-~]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\ufeff]")
_BREAK = re.compile(r"[\r\n\x0b\x0c]+")
_BLANKS = re.compile(r"[ \t\xa0]+")
_PREFIX = re.compile(
    r"^(?:[\w.-]{1,80} \| |#\d{1,4} \d{1,6}\.\d{1,3} |##\[[a-z]{1,20}\])?"  # docker compose, BuildKit, CI runners
    r"(?:\[?\d{4}-\d\d-\d\d[t ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:z|[+-]\d\d:?\d\d)?\]?:? "  # timestamps of log drivers
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?:? )?",
    re.MULTILINE,
)
_PROGRESS = re.compile(
    r"(?:enumerating|counting|compressing|receiving|resolving|writing|unpacking|updating|checking|filtering|"
    r"finding|downloading|uploading)(?: [a-z]{1,20}){0,2}: {1,4}\d{1,12}(?:% \(\d{1,12}/\d{1,12}\))?"
    r"(?:, \d{1,12}(?:\.\d{1,3})? [kmgt]?i?b(?:ytes)?)?(?: \| \d{1,12}(?:\.\d{1,3})? [kmgt]?i?b(?:ytes)?/s)?"
    r"(?:, done)?\.?"
)
_URL = re.compile(r"\b[a-z][a-z0-9+]{1,15}://[^\s'\"<>`]{1,4096}")
_TARGET = re.compile(
    r"cloning into (?:bare repository )?'[^'\n]{1,512}'(?:\.\.\.)?|^head is now at [^\n]{0,2048}", re.MULTILINE
)
_TYPE = re.compile(r"\b[A-Z][A-Za-z]{0,40}[A-Z][A-Za-z]{2,40}\b")
_HEX = re.compile(r"\b(?=[a-f]{0,64}[0-9])[0-9a-f]{7,}\b")


def normalise(text: str) -> str:
    r"""Make ``text`` (any size, hostile) fit for rules: at most 64 KiB or so, lower case, ``\n`` between lines."""
    return masked(plain(text))


def plain(text: str) -> str:
    r"""Bounded, without escapes, colours and control characters, ``\n`` between lines; case and names stay."""
    text = _ESCAPED.sub(_unescape, _bounded(text))
    return _CONTROL.sub("", _BREAK.sub("\n", _ANSI.sub("", text)))


def masked(text: str) -> str:
    """A plain text in lower case and in English, without prefixes, progress and names."""
    text = _PREFIX.sub("", in_english(_BLANKS.sub(" ", text.lower())))
    text = _URL.sub("url", _TARGET.sub("", _PROGRESS.sub("", text)))
    return _HEX.sub("hex", text)


def types_in(text: str) -> frozenset[str]:
    """Words of a plain text that look like a class: ``ReadTimeout``, ``SSLError``; two capitals at least."""
    return frozenset(_TYPE.findall(text))


def _bounded(text: str) -> str:
    """Keep head and tail; the cut is a line of its own, so that it joins no two halves."""
    half = KEPT // 2
    return text if len(text) <= KEPT else f"{text[:half]}\n{text[-half:]}"


def _unescape(found: re.Match[str]) -> str:
    """Undo one escape of JSON or of a Python repr."""
    last = found[0][-1].lower()
    if last == "b":
        return "\x1b"
    return last if last in "\"'" else {"t": " "}.get(last, "\n")
