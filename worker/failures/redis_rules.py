"""What Redis and Valkey say; the same split as `worker.stores.redis.is_outage` makes by type."""

from worker.failures.model import Category
from worker.failures.rules import Rule
from worker.failures.shapes import shape

REDIS_RULES = (
    Rule(
        name="redis_busy",
        category=Category.TRANSIENT_SERVER,
        reason="server_error",
        why="a server that starts, is full, fails over or runs a long script: it answers again once that is over",
        example="MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        text=shape(
            "is loading the dataset in memory",
            r"can't write against a read[ -]only (?:replica|slave)",
            "masterdown link with",
            r"clusterdown (?:the cluster|hash slot)",
            "misconf (?:redis|valkey) is configured",
            "noreplicas not enough",
            r"busy (?:redis|valkey) is busy",
            "max number of clients reached",
            "when used memory > 'maxmemory'",
        ),
    ),
    Rule(
        name="redis_denied",
        category=Category.AUTH_DENIED,
        reason="credential_rejected",
        why="a password or an access list that does not let us in",
        example="WRONGPASS invalid username-password pair or user is disabled.",
        text=shape(
            "invalid username-password pair",
            r"\bnoauth authentication required",
            r"\bnoperm\b",
            r"(?:this user|user [^\n]{1,80}) has no permissions to (?:run|access)",
            "sent auth, but no password is set",
            "auth <password> called without any password configured",
        ),
    ),
)
