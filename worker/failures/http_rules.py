"""HTTP statuses, for a call of ours or read from a message; only where no message was known."""

from worker.failures.model import Category, Failure
from worker.failures.rules import Rule


def _answer(status: int) -> Failure:
    return Failure(operation="clone", stage="mint", http_status=status)


HTTP_RULES = (
    Rule(
        name="http_unauthorized",
        category=Category.AUTH_DENIED,
        reason="credential_rejected",
        why="RFC 9110; GitHub also answers so to a token it does not know yet",
        example=_answer(401),
        statuses=(401,),
        hides_replication=True,
    ),
    Rule(
        name="http_forbidden",
        category=Category.AUTH_DENIED,
        reason="permission_missing",
        why="RFC 9110; GitHub also before a token's permissions are known (octokit/auth-app.js#589)",
        example="fatal: unable to access 'https://github.com/o/r/': The requested URL returned error: 403",
        statuses=(403,),
        hides_replication=True,
    ),
    Rule(
        name="http_proxy",
        category=Category.AUTH_DENIED,
        reason="proxy_denied",
        why="RFC 9110",
        example=_answer(407),
        statuses=(407,),
    ),
    Rule(
        name="http_not_found",
        category=Category.NOT_FOUND,
        reason="not_found",
        why="RFC 9110; GitHub also hides what a token may not see, or does not see yet",
        example=_answer(404),
        statuses=(404, 410),
        hides_replication=True,
    ),
    Rule(
        name="http_request_timeout",
        category=Category.TIMEOUT_AMBIGUOUS,
        reason="server_timeout",
        why="RFC 9110; Daytona says so when it ended a command",
        example=_answer(408),
        statuses=(408,),
    ),
    Rule(
        name="http_conflict",
        category=Category.OPERATION_IN_PROGRESS,
        reason="state_change",
        why="RFC 9110: a state that another request is changing; what is final has a message of its own",
        example=_answer(409),
        statuses=(409, 423, 425),
    ),
    Rule(
        name="http_rate_limit",
        category=Category.RATE_LIMITED,
        reason="rate_limit",
        why="RFC 6585",
        example="fatal: unable to access 'https://github.com/o/r/': The requested URL returned error: 429",
        statuses=(429,),
    ),
    Rule(
        name="http_bad_request",
        category=Category.INVALID_REQUEST,
        reason="bad_request",
        why="RFC 9110: the request itself; the same one meets the same answer",
        example=_answer(422),
        statuses=(400, 402, 405, 406, 411, 412, 413, 414, 415, 416, 417, 421, 422, 424, 426, 428, 431),
    ),
    Rule(
        name="http_insufficient_storage",
        category=Category.RESOURCE_EXHAUSTED,
        reason="disk_full",
        why="RFC 4918; E2B's file service",
        example=_answer(507),
        statuses=(507,),
    ),
    Rule(
        name="http_not_implemented",
        category=Category.INVALID_REQUEST,
        reason="bad_request",
        why="RFC 9110: 501 and 505 do not pass",
        example=_answer(501),
        statuses=(501, 505),
    ),
    Rule(
        name="http_server_error",
        category=Category.TRANSIENT_SERVER,
        reason="server_error",
        why="RFC 9110, and the 52x that CDNs add",
        example="fatal: unable to access 'https://github.com/o/r/': The requested URL returned error: 503",
        statuses=(500, 502, 503, 504, 520, 521, 522, 523, 524, 527, 529, 530, 599),
    ),
)
