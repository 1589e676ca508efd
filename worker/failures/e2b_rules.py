"""E2B's own words; it answers 502 for a sandbox that is gone."""

from worker.failures.model import Category, Failure
from worker.failures.rules import Rule
from worker.failures.shapes import shape

E2B_RULES = (
    Rule(
        name="e2b_port_closed",
        category=Category.TRANSIENT_SERVER,
        reason="port_closed",
        why="the sandbox runs, its daemon does not listen yet",
        example="The sandbox is running but port is not open",
        text=shape("port is not open", "envd inside it could not be reached", r"failed to init (?:new )?envd"),
    ),
    Rule(
        name="e2b_sandbox_gone",
        category=Category.SANDBOX_LOST,
        reason="sandbox_gone",
        why="rakazo#358: the wordings for a sandbox that ended",
        example="TimeoutException: The sandbox was not found: This error is likely due to sandbox timeout",
        text=shape(
            r"sandbox [^\n:]{0,80}(?:was |could )?not (?:be )?found",
            r"sandbox [^\n:]{0,80}(?:wasn't|isn't) (?:found|running)",
            "likely due to sandbox timeout",
            "sandbox is probably not running",
            r"sandbox [^\n:]{0,80}is paused",
            # "may have been killed ...": the SDK could not reach it and does not know.
            r"(?<!may have been )killed or reached its (?:end of life|timeout)",
            r"sandbox [^\n:]{0,80}(?:is not running|does not exist|doesn't exist|no longer exists)",
            r"sandbox [^\n:]{0,80}has been (?:killed|deleted|destroyed|removed|terminated|evicted)",
            r"sandbox [^\n:]{0,80}(?:was (?:evicted|killed|deleted)|is destroyed)",
            r"sandbox [^\n:]{0,80}can(?:'t|not) be resumed",
            r"sandbox [^\n:]{0,80}already (?:destroyed|deleted|terminated)",
        ),
    ),
    Rule(
        name="e2b_process_gone",
        category=Category.NOT_FOUND,
        reason="process_gone",
        why="a process of the sandbox that ended already",
        example="Error: process with PID 12345 not found",
        text=shape(r"process with pid \d{1,10} not found", r"no such process\b", r"process not found$"),
    ),
    Rule(
        name="e2b_sandbox_lost_type",
        category=Category.SANDBOX_LOST,
        reason="sandbox_gone",
        why="the SDK's types for the same",
        example=Failure(operation="dispatch", stage="launch", exception="e2b.exceptions.SandboxNotRunningException"),
        named=True,
        exceptions=("SandboxNotRunningException", "SandboxNotFoundException", "DaytonaSpotEvictedError"),
    ),
    Rule(
        name="e2b_template_missing",
        category=Category.NOT_FOUND,
        reason="template_missing",
        why="E2B 404 and Daytona 404: no such template or snapshot, or not for this account",
        example="e2b.exceptions.SandboxException: 404: template 'owner-base' not found",
        text=shape(
            r"\b(?:template|snapshot|volume|secret) [^\n:]{0,120}not found",
            r"\b(?:template|snapshot|volume|secret) [^\n:]{0,120}does not exist",
        ),
    ),
    Rule(
        name="e2b_command_timeout",
        category=Category.TIMEOUT_AMBIGUOUS,
        reason="command_timeout",
        why="E2B's SDK when a long call was cut: the command may still run",
        example="This error is likely due to exceeding 'timeout' - the total time a long running request can be active",
        text=shape(
            "likely due to exceeding 'timeout'",
            "cancelled by the server or a proxy while it was in flight",
            "without an end event",
        ),
    ),
)
