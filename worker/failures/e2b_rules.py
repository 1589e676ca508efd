"""E2B's own words; it answers 502 for a sandbox that is gone."""

from worker.failures.model import Category, Failure
from worker.failures.rules import Rule, shape

E2B_RULES = (
    Rule(
        name="e2b_port_closed",
        category=Category.TRANSIENT_SERVER,
        reason="port_closed",
        why="the sandbox runs, its daemon does not listen yet",
        example="The sandbox is running but port is not open",
        text=shape("sandbox is running but port is not open"),
    ),
    Rule(
        name="e2b_sandbox_gone",
        category=Category.SANDBOX_LOST,
        reason="sandbox_gone",
        why="rakazo#358: the wordings for a sandbox that ended",
        example="TimeoutException: The sandbox was not found: This error is likely due to sandbox timeout",
        text=shape(
            "sandbox was not found",
            "likely due to sandbox timeout",
            "sandbox is probably not running",
            "was killed or reached its end of life",
            "sandbox(?: [a-z0-9-]{1,64})? (?:not found|is not running|does not exist|has been (?:killed|deleted))",
        ),
    ),
    Rule(
        name="e2b_process_gone",
        category=Category.NOT_FOUND,
        reason="process_gone",
        why="a process of the sandbox that ended already",
        example="Error: process with PID 12345 not found",
        text=shape(r"process with pid \d{1,10} not found"),
    ),
    Rule(
        name="e2b_sandbox_lost_type",
        category=Category.SANDBOX_LOST,
        reason="sandbox_gone",
        why="the SDK's types for the same",
        example=Failure(operation="dispatch", stage="launch", exception="e2b.exceptions.SandboxNotRunningException"),
        exceptions=("SandboxNotRunningException", "SandboxNotFoundException"),
    ),
)
