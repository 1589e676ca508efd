"""What others do: repeat always, repeat never, or look for words in the message.

The words are those of a clone retry in the wild (hints of weather, hints of a token that is too new, shapes that
are final), asked in that order, without places for numbers and without roots.
"""

from collections.abc import Callable

from worker.failures.classify import is_fresh
from worker.failures.model import Credential, Failure

WEATHER = (
    "could not resolve host", "temporary failure in name resolution", "connection refused", "connection reset",
    "connection timed out", "timed out", "network is unreachable", "no route to host", "tls handshake", "early eof",
    "rpc failed", "unexpected disconnect", "the remote end hung up unexpectedly", "index-pack failed",
    "service unavailable", "gateway timeout", "too many requests", "rate limit",
)  # fmt: skip
NEW_TOKEN = (
    "repository not found", "authentication failed", "invalid username or password", "bad credentials",
    "the requested url returned error: 401", "the requested url returned error: 403",
    "the requested url returned error: 404", "unexpected http status code: 401", "unexpected http status code: 403",
    "unexpected http status code: 404",
)  # fmt: skip


def always(failure: Failure) -> bool:
    """Repeat whatever it was."""
    return failure is not None


def never(failure: Failure) -> bool:
    """Repeat nothing."""
    return failure is None


def substrings(failure: Failure) -> bool:
    """Look for words: weather is repeated; a token's refusal when the token was minted; nothing else."""
    text = failure.text.lower()
    if any(hint in text for hint in WEATHER):
        return True
    minted = failure.credential is Credential.MINTED or is_fresh(failure)
    return minted and any(hint in text for hint in NEW_TOKEN)


BASELINES: dict[str, Callable[[Failure], bool]] = {"substrings": substrings, "always": always, "never": never}
