"""What GitHub's answers to a mint mean. Pure: statuses, headers and bodies in, facts or values out.

Statuses and headers: GitHub's REST documentation, "Apps: installations" and "Rate limits for the REST API".
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from worker.failures.model import Category, Failure
from worker.failures.retry_after import retry_after

SECONDARY_WAIT = 60.0
"""Seconds to wait when a secondary rate limit names none (GitHub: "wait for at least one minute")."""
RETRY_AFTER_LIMIT = 86_400.0
"""Seconds; a longer wait is a mistake or an attack."""
TEXT_LIMIT = 2048
"""Characters of an error body that are kept as private text."""

# Status, a phrase of the body (lower case), and what both mean; the first that fits holds.
_REFUSALS = (
    (401, "", Category.AUTH_DENIED, "app_authentication_failed"),
    (403, "suspended", Category.POLICY_DENIED, "installation_suspended"),
    (403, "", Category.POLICY_DENIED, "app_forbidden"),
    (404, "", Category.NOT_FOUND, "app_not_installed"),
    (422, "permission", Category.POLICY_DENIED, "permission_not_granted"),
    (422, "", Category.POLICY_DENIED, "repository_not_covered"),
)
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One HTTP answer. Header names are lower-case; ``body`` is bounded and may be cut."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def failure(stage: str, category: Category, reason: str, **facts: Any) -> Failure:
    """The facts of a failed mint; a mint may always be repeated."""
    return Failure(
        operation="mint", stage=stage, provider="github", category=category, reason=reason, idempotent=True, **facts
    )


def refusal(stage: str, answer: Answer, now: float) -> Failure:
    """What an answer other than success means, at ``now`` (seconds since 1970)."""
    text = answer.body.decode(errors="replace")[:TEXT_LIMIT]
    asked = retry_after(answer.headers, now=now)
    wait = None if asked is None else min(asked, RETRY_AFTER_LIMIT)
    if _is_rate_limit(answer, text, wait):
        category, reason = Category.RATE_LIMITED, "rate_limit"
        wait = SECONDARY_WAIT if wait is None else wait
    else:
        category, reason = _judge(answer.status, text.lower())
    # A success whose body makes no sense may still hold a token.
    private = "" if answer.status < 300 else text
    return failure(stage, category, reason, http_status=answer.status, retry_after=wait, text=private)


def _judge(status: int, text: str) -> tuple[Category, str]:
    if status >= 500 or status == 408:
        return Category.TRANSIENT_SERVER, "github_unavailable"
    if status < 300:
        return Category.TRANSIENT_SERVER, "github_answer_garbled"
    if status < 400:
        return Category.POLICY_DENIED, "redirect_refused"
    for known, phrase, category, reason in _REFUSALS:
        if status == known and phrase in text:
            return category, reason
    return Category.UNKNOWN, "unexpected_status"


def _is_rate_limit(answer: Answer, text: str, wait: float | None) -> bool:
    if answer.status not in (403, 429):
        return False
    spent = answer.headers.get("x-ratelimit-remaining", "").strip() == "0"
    return wait is not None or spent or answer.status == 429 or "rate limit" in text.lower()


def read_installation(answer: Answer) -> tuple[int, bool] | None:
    """The installation's id and whether it is suspended; ``None`` for an answer that makes no sense."""
    fields = _json_object(answer)
    number = fields.get("id")
    if not isinstance(number, int) or isinstance(number, bool) or number <= 0:
        return None
    return number, fields.get("suspended_at") is not None


def read_token(answer: Answer) -> tuple[str, float] | None:
    """The token and its end (seconds since 1970); ``None`` for an answer that makes no sense."""
    fields = _json_object(answer)
    token, expires_at = fields.get("token"), fields.get("expires_at")
    if not isinstance(token, str) or not isinstance(expires_at, str) or not _TOKEN.fullmatch(token):
        return None
    try:
        end = datetime.fromisoformat(expires_at)
    except ValueError:
        return None
    return token, (end if end.tzinfo else end.replace(tzinfo=UTC)).timestamp()


def _json_object(answer: Answer) -> dict[str, Any]:
    try:
        fields = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}
