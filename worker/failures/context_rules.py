"""Go's and gRPC's contexts: deadlines and calls whose caller gave up; the root stands in other rules."""

from worker.failures.model import Category, Failure
from worker.failures.rules import Rule
from worker.failures.shapes import shape

CONTEXT_RULES = (
    Rule(
        name="context_deadline",
        category=Category.TIMEOUT_AMBIGUOUS,
        reason="server_timeout",
        why="Go's and gRPC's words for a deadline on the server's side; the work may go on",
        example="shim error: containerd-shim: opening init-stdout failed: context deadline exceeded",
        text=shape(
            r"context deadline exceeded(?! ?\(client\.timeout)",
            r"code = deadline_?exceeded",
            r"\.deadline_exceeded\b",
            "did not start before the specified",
            "timeout waiting for container",
            "did not receive an exit event",
        ),
    ),
    Rule(
        name="context_cancelled",
        category=Category.CANCELLED,
        reason="cancelled",
        why="Go's word for a call whose caller gave up",
        example="error: Initial deploy failed: context canceled",
        text=shape(
            r"context cancell?ed",
            r"operation (?:was )?cancell?ed",
            "softtimelimitexceeded",
            "cancellederror",
            "keyboardinterrupt",
        ),
    ),
    Rule(
        name="engine_words",
        category=Category.UNKNOWN,
        reason="provider_error",
        why="Docker Engine: it answers 500 to what it cannot do at all as well as to what it cannot do now",
        example=Failure(
            operation="clone", stage="create", http_status=500, text="Error response from daemon: nothing we know"
        ),
        text=shape(r"error response from daemon: (?![^\n]{0,400}(?:http status|server error|unavailable|gateway))"),
        statuses=(500,),
    ),
)
