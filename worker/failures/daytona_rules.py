"""Daytona's own words. Its statuses mislead (400 for a stopped sandbox), so its messages come first."""

from worker.failures.model import Category
from worker.failures.rules import Rule, shape

DAYTONA_RULES = (
    Rule(
        name="daytona_sandbox_stopped",
        category=Category.SANDBOX_LOST,
        reason="sandbox_stopped",
        why="Daytona's daemon behind a stopped sandbox (400 and 500)",
        example="failed to resolve container IP after 3 attempts: no IP address found. Is the Sandbox started?",
        text=shape("no ip address found", "has no ip address", "is the sandbox started", "sandbox_not_running"),
    ),
    Rule(
        name="daytona_state_change",
        category=Category.OPERATION_IN_PROGRESS,
        reason="state_change",
        why="fabro#768: start and stop overlap for a while",
        example="Sandbox is not in a valid state to be destroyed. State: starting",
        text=shape(
            "state change in progress",
            "sandbox stop still in progress",
            r"not in a valid state to be [a-z]{1,20}\. state: (?:start|stopp|creat|restor|destroy|archiv|pull)ing",
        ),
    ),
    Rule(
        name="daytona_no_runner",
        category=Category.TRANSIENT_SERVER,
        reason="no_capacity",
        why="the provider has no machine at the moment",
        example="Failed to create sandbox: No available runners",
        text=shape("no available (?:runners?|nodes?)", "no capacity", "insufficient capacity"),
    ),
    Rule(
        name="daytona_quota",
        category=Category.POLICY_DENIED,
        reason="account_quota",
        why="a limit of the account, not of the moment",
        example="Failed to create sandbox: Total CPU limit exceeded. Maximum allowed: 4500.",
        text=shape(
            r"total [a-z]{1,20} (?:limit|quota) exceeded", "network access is restricted", "organization is suspended"
        ),
    ),
    Rule(
        name="daytona_key",
        category=Category.AUTH_DENIED,
        reason="credential_rejected",
        why="the worker's own key for the provider",
        example="Failed to create sandbox: API key not found",
        text=shape("api key not found", "api key (?:or jwt token )?is required", "api key is missing required"),
    ),
    Rule(
        name="daytona_not_ready",
        category=Category.TIMEOUT_AMBIGUOUS,
        reason="not_ready",
        why="the sandbox exists but did not become ready in time",
        example="Sandbox failed to become ready within the timeout period",
        text=shape("failed to become ready within", "did not start before the specified timeout"),
    ),
    Rule(
        name="daytona_command_timeout",
        category=Category.TIMEOUT_AMBIGUOUS,
        reason="command_timeout",
        why="the daemon ended a command (408) or the client stopped waiting; it may still run",
        example="DaytonaProcessExecutionTimeoutError: Failed to execute command: command execution timeout",
        text=shape("command execution timeout", "daytonaconnectiontimeouterror", "daytonatimeouterror"),
    ),
    Rule(
        name="daytona_internal",
        category=Category.TRANSIENT_SERVER,
        reason="server_error",
        why="the API's own error state",
        example='{"state": "error", "errorReason": "internal error", "recoverable": false}',
        text=shape('"errorreason": ?"internal error"'),
    ),
)
