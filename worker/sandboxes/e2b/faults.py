"""E2B's exceptions as facts. Foreign ones come through: httpx, connectrpc, JSON, KeyError, a bare Exception."""

from dataclasses import replace

from worker.failures.model import Category, Failure
from worker.sandboxes.facts import plain_facts

_NO_END = "Command ended without an end event"
"""What the SDK raises, as a bare ``Exception``, when a command's stream ends without its end."""
_STATUSES = {"AuthenticationException": 401, "RateLimitException": 429, "ServiceBusyException": 503}
"""Types that stand for a status which they do not carry."""


def e2b_facts(exc: BaseException, *, operation: str, stage: str) -> Failure:
    """The facts of an exception of e2b or of what it lets through."""
    kind = type(exc).__name__
    status = getattr(exc, "status_code", None) or _STATUSES.get(kind)
    found = plain_facts(
        exc, operation=operation, stage=stage, provider="e2b", http_status=status if isinstance(status, int) else None
    )
    if type(exc) is Exception and _NO_END in str(exc):
        return replace(found, category=Category.TRANSIENT_NETWORK, reason="hung_up")
    if kind == "KeyError":
        # An answer without a field the SDK reads: something stands before the server.
        return replace(found, category=Category.TRANSIENT_SERVER, reason="malformed_answer", text="")
    if kind == "ConnectError" and type(exc).__module__.startswith("connectrpc"):
        # Not httpx's of the same name: this stream was open, and broke.
        return replace(found, category=Category.TRANSIENT_NETWORK, reason="connection_reset")
    return found
