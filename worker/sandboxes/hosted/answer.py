"""What the launcher answers. It comes out of a sandbox, so nothing of it is believed before it is checked. Pure."""

import base64
import binascii
import re
from dataclasses import dataclass, field

_HEAD = re.compile(
    r"^sandferry (?P<nonce>[0-9a-f]{32}) (?P<how>itself|output_limit|watchdog|ended|unconfirmed|refused) "
    r"(?P<code>-|[0-9]{1,3}) (?P<sent>-|SIGTERM|SIGKILL) (?P<out>[0-9]{1,15}) (?P<err>[0-9]{1,15})\r?$",
    re.MULTILINE,
)
_BODY = re.compile(r"\s*((?:[A-Za-z0-9+/=]+\s+)*)\.[ \t]*\r?\n\s*((?:[A-Za-z0-9+/=]+\s+)*)\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``code`` is ``None`` when nobody could say it; ``sent`` is the last signal we sent. Sizes are bytes.

    A stream whose bytes are fewer than its size has to be fetched.
    """

    how: str
    code: int | None
    sent: str | None
    out_size: int
    err_size: int
    out: bytes = field(repr=False)
    err: bytes = field(repr=False)


def parse(text: str, nonce: str) -> Answer | None:
    """The answer to ``nonce``, or ``None`` when ``text`` holds none. What a login shell printed before is skipped."""
    heads = [head for head in _HEAD.finditer(text) if head["nonce"] == nonce]
    body = _BODY.match(text, heads[-1].end()) if heads else None
    if body is None:
        return None
    head = heads[-1]
    out_size, err_size = int(head["out"]), int(head["err"])
    try:
        out, err = (base64.b64decode("".join(part.split()), validate=True) for part in body.groups())
    except binascii.Error:
        return None
    return Answer(
        how=head["how"],
        code=None if head["code"] == "-" else int(head["code"]),
        sent=None if head["sent"] == "-" else head["sent"],
        out_size=out_size,
        err_size=err_size,
        out=out[:out_size],
        err=err[:err_size],
    )
