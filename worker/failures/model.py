"""The facts of a failure, and the exceptions that carry them.

Pure: standard library only. A :class:`Failure` is everything a classifier may look at; its ``text`` is
private and never logged, stored or sent.
"""

from dataclasses import dataclass, field
from enum import StrEnum


class Category(StrEnum):
    """What kind of failure it was; decides whether waiting can help."""

    TRANSIENT_NETWORK = "transient_network"
    TRANSIENT_SERVER = "transient_server"
    RATE_LIMITED = "rate_limited"
    TOKEN_REPLICATION = "token_replication"
    AUTH_DENIED = "auth_denied"
    NOT_FOUND = "not_found"
    INVALID_REQUEST = "invalid_request"
    POLICY_DENIED = "policy_denied"
    RESOURCE_EXHAUSTED = "resource_exhausted"
    SANDBOX_LOST = "sandbox_lost"
    TIMEOUT_AMBIGUOUS = "timeout_ambiguous"
    OPERATION_IN_PROGRESS = "operation_in_progress"
    CORRUPT_DATA = "corrupt_data"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class Credential(StrEnum):
    """Where the credential of an operation came from."""

    NONE = "none"
    STATIC = "static"
    MINTED = "minted"


class EndedBy(StrEnum):
    """Who ended a command."""

    ITSELF = "itself"
    DEADLINE = "deadline"
    CANCELLED = "cancelled"
    OUTPUT_LIMIT = "output_limit"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The facts of one failure.

    ``exception`` is a qualified class name (``httpx.ConnectError``), ``signal`` and ``errno`` are names
    (``SIGKILL``, ``ENOSPC``), ``retry_after`` and ``credential_age`` are seconds. ``idempotent`` says that
    the step may be repeated even when nobody knows what happened. ``reason`` is set by a step that knows
    why it failed and needs no rule to find out.
    """

    operation: str
    stage: str
    provider: str = "none"
    program: str | None = None
    exception: str | None = None
    http_status: int | None = None
    exit_code: int | None = None
    signal: str | None = None
    errno: str | None = None
    retry_after: float | None = None
    credential: Credential = Credential.NONE
    credential_age: float | None = None
    ended_by: EndedBy | None = None
    idempotent: bool = False
    category: Category | None = None
    reason: str | None = None
    field_name: str | None = None
    cause: str | None = None
    """A valid cause line (:class:`worker.failures.cause.Cause`) that a helper in a sandbox gave."""
    text: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What to do about a failure: the countdown (seconds) is the backoff, ``None`` when final."""

    category: Category
    reason: str
    retry: bool
    countdown: float | None = None
    rule: str = "none"
    exhausted: bool = False


class OperationFailed(Exception):  # noqa: N818 - the name says what happened, as git and Celery do
    """A step failed and knows the facts. ``str()`` holds no text of the failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.operation}/{failure.stage}")
        self.failure = failure


class InvalidRequest(Exception):  # noqa: N818
    """A request that no retry can mend. Names the field, never its value."""

    def __init__(self, field_name: str, reason: str) -> None:
        super().__init__(f"{field_name}: {reason}")
        self.field_name = field_name
        self.reason = reason


class Cancelled(Exception):  # noqa: N818
    """The run was cancelled; raised at a step boundary or by a command that was ended for it."""
