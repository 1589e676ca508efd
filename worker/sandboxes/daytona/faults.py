"""Daytona's exceptions as facts. The SDK wraps what happened, soft limits too, in a `DaytonaError` without a status."""

from collections.abc import Iterator
from dataclasses import replace

from worker.failures.model import Category, Failure
from worker.sandboxes.facts import plain_facts, qualified_name

_BARE = "DaytonaError"
_NO_PARTS = "Unexpected Content-Type"
"""What the SDK says of an answer to a download that is not in parts."""
_HTTP = ("ClientResponseError", "HTTPStatusError")
"""Of aiohttp and httpx: errors of the file calls, whose status the SDK does not carry over."""


def daytona_facts(exc: BaseException, *, operation: str, stage: str) -> Failure:
    """The facts of an exception of daytona: a bare ``DaytonaError`` is read through what it was raised from."""
    status = getattr(exc, "status_code", None)
    found = plain_facts(exc, operation=operation, stage=stage, provider="daytona", http_status=_number(status))
    if type(exc).__name__ not in (_BARE, *_HTTP) or found.http_status is not None:
        return found
    if _NO_PARTS in found.text:
        return replace(found, category=Category.TRANSIENT_SERVER, reason="malformed_answer")
    for cause in _chain(exc):
        name = type(cause).__name__
        if name in _HTTP:
            response = getattr(cause, "response", None)
            status = getattr(cause, "status", None) or getattr(response, "status_code", None)
            return replace(found, exception=qualified_name(cause), http_status=_number(status))
        if name == "ValidationError":
            # A 2xx answer that is no sandbox: something stands before the server.
            return replace(found, category=Category.TRANSIENT_SERVER, reason="malformed_answer", text="")
        if not name.startswith("Daytona"):
            return replace(found, exception=qualified_name(cause), text=f"{found.text}\n{cause}")
    return found


def _chain(exc: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = exc
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _number(status: object) -> int | None:
    return status if isinstance(status, int) else None
