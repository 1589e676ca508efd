"""When a server says to come back: ``Retry-After`` (RFC 9110, 10.2.3) and GitHub's ``X-RateLimit-Reset``."""

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

_NUMBER = re.compile(r"[0-9]{1,10}(?:\.[0-9]{1,6})?")
_LONGEST = 64
"""Characters; an HTTP date has 29."""


def parse_retry_after(value: str, *, now: float) -> float | None:
    """Seconds to wait, from either form: a number of seconds or an HTTP date. A past date is 0.

    ``now`` is seconds since the epoch. Returns ``None`` when the value is neither.
    """
    value = value.strip()
    if len(value) > _LONGEST or not value.isascii():
        return None
    if _NUMBER.fullmatch(value):
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
        return max(0.0, moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now)
    except (ValueError, OverflowError, OSError):
        return None


def parse_reset(value: str, *, now: float) -> float | None:
    """Seconds until a moment given as seconds since the epoch; a past one is 0, anything else ``None``."""
    value = value.strip()
    return max(0.0, float(value) - now) if _NUMBER.fullmatch(value) else None


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """The wait (seconds) that response headers ask for, or ``None``.

    ``Retry-After`` outranks ``X-RateLimit-Reset``, which counts only when ``X-RateLimit-Remaining`` is 0: GitHub
    sends it with every answer (docs.github.com, "Rate limits for the REST API").
    """
    known = {name.lower(): value for name, value in headers.items()}
    asked = parse_retry_after(known.get("retry-after", ""), now=now)
    if asked is None and known.get("x-ratelimit-remaining", "").strip() == "0":
        asked = parse_reset(known.get("x-ratelimit-reset", ""), now=now)
    return asked
