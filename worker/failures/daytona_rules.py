"""Daytona's own words. Its statuses mislead (400 for a stopped sandbox), so its messages come first."""

from worker.failures.model import Category
from worker.failures.rules import Rule
from worker.failures.shapes import shape

DAYTONA_RULES = (
    Rule(
        name="daytona_sandbox_stopped",
        category=Category.SANDBOX_LOST,
        reason="sandbox_stopped",
        why="Daytona's daemon behind a stopped sandbox (400 and 500)",
        example="failed to resolve container IP after 3 attempts: no IP address found. Is the Sandbox started?",
        text=shape(
            "no ip address found",
            "has no ip address",
            "is the sandbox started",
            "sandbox_not_running",
            r"sandbox [^\n:]{0,80}is not (?:started|in a started state)",
            r"sandbox [^\n:]{0,80}is (?:stopped|archived|in error state|in an error state)",
            r"sandbox is not (?:started|running)",
        ),
    ),
    Rule(
        name="daytona_state_change",
        category=Category.OPERATION_IN_PROGRESS,
        reason="state_change",
        why="fabro#768: start and stop overlap for a while",
        example="Sandbox is not in a valid state to be destroyed. State: starting",
        text=shape(
            "state change in progress",
            "stop still in progress",
            r"(?:start|stop|snapshot|backup|resize|archive|delete)[a-z]{0,5} (?:is )?(?:still |already )?in progress",
            r"not in a valid state to be [a-z]{1,20}\. state: (?:start|stopp|creat|restor|destroy|archiv|pull)ing",
            r"(?:snapshot|image) [^\n:]{0,80}is (?:building|pulling|pending|being)",
        ),
    ),
    Rule(
        name="daytona_no_runner",
        category=Category.TRANSIENT_SERVER,
        reason="no_capacity",
        why="the provider has no machine at the moment",
        example="Failed to create sandbox: No available runners",
        text=shape(
            r"no available (?:runners?|nodes?|hosts?|machines?|workers?)",
            r"(?:no|insufficient|not enough|out of) capacity",
            r"no (?:runners?|nodes?) (?:are |is )?available",
            "failed to place sandbox",
        ),
    ),
    Rule(
        name="daytona_quota",
        category=Category.POLICY_DENIED,
        reason="account_quota",
        why="a limit of the account, not of the moment",
        example="Failed to create sandbox: Total CPU limit exceeded. Maximum allowed: 4500.",
        text=shape(
            r"(?:cpu|memory|disk|storage|gpu|sandbox|concurren[a-z]{1,6}|resource|plan|account|snapshot)"
            r"(?: [a-z]{1,20}){0,3} limit (?:exceeded|reached|hit)",
            r"total [a-z]{1,20} quota exceeded",
            r"(?:exceeds|exceeded|reached) (?:the |your )?maximum allowed",
            r"(?:exceeds|exceeded|reached) (?:the |your )?maximum number",
            "maximum number of concurrent",
            "network access is restricted",
            "organization is suspended",
            r"(?:insufficient|depleted|out of) credits",
            "payment required",
            "billing limit",
            "spending limit",
            r"quota (?:has been |was )?exceeded",
        ),
    ),
    Rule(
        name="daytona_key",
        category=Category.AUTH_DENIED,
        reason="credential_rejected",
        why="the worker's own key for the provider",
        example="Failed to create sandbox: API key not found",
        text=shape(
            "api key not found",
            r"api key (?:or jwt token )?is required",
            "api key is missing",
            "no api key",
            r"api key [^\n]{0,30}(?:invalid|expired|revoked)",
        ),
    ),
    Rule(
        name="daytona_not_ready",
        category=Category.TIMEOUT_AMBIGUOUS,
        reason="not_ready",
        why="the sandbox exists but did not become ready in time",
        example="Sandbox failed to become ready within the timeout period",
        text=shape(
            r"failed to (?:start|stop|become ready) within",
            r"did not (?:become ready|start) (?:within|in time|before)",
            r"function '?[^\n']{1,80}'? exceeded timeout",
        ),
    ),
    Rule(
        name="daytona_command_timeout",
        category=Category.TIMEOUT_AMBIGUOUS,
        reason="command_timeout",
        why="the daemon ended a command (408) or the client stopped waiting; it may still run",
        example="DaytonaProcessExecutionTimeoutError: Failed to execute command: command execution timeout",
        text=shape(
            "command execution timeout",
            "daytonaconnectiontimeouterror",
            "daytonatimeouterror",
            "daytonaqueuetimeouterror",
            "process_execution_timeout",
            r"command (?:timed out|exceeded)",
        ),
    ),
    Rule(
        name="daytona_internal",
        category=Category.TRANSIENT_SERVER,
        reason="server_error",
        why="the API's own error state",
        example='{"state": "error", "errorReason": "internal error", "recoverable": false}',
        text=shape(r'"errorreason": ?"internal error"', "error when creating instance"),
    ),
)
