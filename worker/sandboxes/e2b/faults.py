"""E2B's exceptions as facts. Foreign ones come through: httpx, connectrpc, JSON, KeyError, a bare Exception."""

from dataclasses import replace

from worker.failures.model import Category, Failure
from worker.sandboxes.facts import plain_facts

_NO_END = "Command ended without an end event"
"""What the SDK raises, as a bare ``Exception``, when a command's stream ends without its end."""
_UNREACHABLE = ": The sandbox could not be reached and its state is unknown"
"""Where the SDK's own guesses begin (``e2b/exceptions.py``): what might have become of the sandbox, in words that other
failures are known by. Our driver asks the provider instead."""
_CODES = {"Code.INTERNAL": 500, "Code.UNKNOWN": 500, "Code.DATA_LOSS": 500, "Code.ABORTED": 409}
"""Codes of the Connect protocol and the HTTP statuses it gives them; the SDK makes them of statuses, too."""
_NO_RPC = "invalid content-type"
_STATUSES = {"AuthenticationException": 401, "RateLimitException": 429, "ServiceBusyException": 503}
"""Types that stand for a status which they do not carry."""


def e2b_facts(exc: BaseException, *, operation: str, stage: str) -> Failure:
    """The facts of an exception of e2b or of what it lets through."""
    kind = type(exc).__name__
    code, _, said = str(exc).partition(": ")
    status = getattr(exc, "status_code", None) or _STATUSES.get(kind) or _CODES.get(code)
    found = plain_facts(
        exc, operation=operation, stage=stage, provider="e2b", http_status=status if isinstance(status, int) else None
    )
    if kind == "SandboxUnreachableException":
        return replace(found, text=found.text.partition(_UNREACHABLE)[0])
    if code in _CODES and said.startswith(_NO_RPC):
        return replace(found, category=Category.TRANSIENT_SERVER, reason="malformed_answer")
    if type(exc) is Exception and _NO_END in str(exc):
        return replace(found, category=Category.TRANSIENT_NETWORK, reason="hung_up")
    if kind == "KeyError":
        # An answer without a field the SDK reads: something stands before the server.
        return replace(found, category=Category.TRANSIENT_SERVER, reason="malformed_answer", text="")
    if kind == "ConnectError" and type(exc).__module__.startswith("connectrpc"):
        # Not httpx's of the same name: this stream was open, and broke.
        return replace(found, category=Category.TRANSIENT_NETWORK, reason="connection_reset")
    return found
