"""Who ended a command, its signal, its exit code. No text is asked."""

from typing import Any

from worker.failures.model import Category, EndedBy, Failure
from worker.failures.rules import Rule
from worker.failures.shapes import shape


def _run(**facts: Any) -> Failure:
    return Failure(operation="capture", stage="helper", **facts)


ENDING_RULES = (
    Rule(
        name="cancelled",
        category=Category.CANCELLED,
        reason="cancelled",
        why="we ended it because the run was cancelled",
        example=_run(ended_by=EndedBy.CANCELLED, signal="SIGKILL"),
        ended_by=(EndedBy.CANCELLED,),
    ),
    Rule(
        name="cancelled_exception",
        category=Category.CANCELLED,
        reason="cancelled",
        why="raised at a step boundary of a cancelled run",
        example=_run(exception="worker.failures.model.Cancelled"),
        exceptions=("Cancelled",),
    ),
    Rule(
        name="deadline",
        category=Category.TIMEOUT_AMBIGUOUS,
        reason="deadline",
        why="we ended it at its deadline; how far it came is not known",
        example=_run(ended_by=EndedBy.DEADLINE, exit_code=137),
        ended_by=(EndedBy.DEADLINE,),
    ),
    Rule(
        name="soft_time_limit",
        category=Category.TIMEOUT_AMBIGUOUS,
        reason="soft_time_limit",
        why="Celery's soft limit; the caller looks for it along the exception chain first",
        example=_run(exception="billiard.exceptions.SoftTimeLimitExceeded"),
        exceptions=("SoftTimeLimitExceeded",),
    ),
    Rule(
        name="output_limit",
        category=Category.RESOURCE_EXHAUSTED,
        reason="output_limit",
        why="we ended it because its output passed the limit; the next run would say as much",
        example=_run(ended_by=EndedBy.OUTPUT_LIMIT, signal="SIGKILL"),
        ended_by=(EndedBy.OUTPUT_LIMIT,),
    ),
    Rule(
        name="killed_with_its_container",
        category=Category.SANDBOX_LOST,
        reason="container_stopped",
        why="137 has three causes; the engine's own word for a stopped container names this one",
        example=_run(exit_code=137, text="Error response from daemon: Container 0f is not running"),
        exit_codes=(137,),
        text=shape(r"container [^\n]{0,80}is not running", "no such container"),
    ),
    Rule(
        name="killed",
        category=Category.RESOURCE_EXHAUSTED,
        reason="killed",
        why="SIGKILL that is not ours: the kernel's OOM killer far more often than anything else",
        example=_run(signal="SIGKILL"),
        signals=("SIGKILL",),
    ),
    Rule(
        name="killed_exit",
        category=Category.RESOURCE_EXHAUSTED,
        reason="killed",
        why="128 + 9, as a shell or Docker reports SIGKILL, or Python's -9; our own kill and the deadline stand above",
        example=_run(exit_code=137, ended_by=EndedBy.UNKNOWN),
        exit_codes=(137, -9),
    ),
    Rule(
        name="limit_signal",
        category=Category.RESOURCE_EXHAUSTED,
        reason="process_limit",
        why="setrlimit(2): CPU time or file size",
        example=_run(signal="SIGXFSZ"),
        signals=("SIGXCPU", "SIGXFSZ"),
    ),
    Rule(
        name="limit_exit",
        category=Category.RESOURCE_EXHAUSTED,
        reason="process_limit",
        why="128 + SIGXCPU (24) or SIGXFSZ (25)",
        example=_run(exit_code=153),
        exit_codes=(152, 153),
    ),
    Rule(
        name="terminated",
        category=Category.UNKNOWN,
        reason="terminated",
        why="somebody else asked it to stop; nobody says why",
        example=_run(signal="SIGTERM"),
        signals=("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"),
    ),
    Rule(
        name="terminated_exit",
        category=Category.UNKNOWN,
        reason="terminated",
        why="128 + SIGTERM or SIGINT; 129 is no SIGHUP here, git exits with it on a usage error",
        example=_run(exit_code=143),
        exit_codes=(130, 143, -2, -15),
    ),
    Rule(
        name="crashed",
        category=Category.UNKNOWN,
        reason="crashed",
        why="a fault of the program itself",
        example=_run(signal="SIGSEGV"),
        signals=("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE", "SIGSYS"),
    ),
    Rule(
        name="crashed_exit",
        category=Category.UNKNOWN,
        reason="crashed",
        why="128 + SIGABRT (6), SIGBUS (7), SIGFPE (8) or SIGSEGV (11), or Python's negative form",
        example=_run(exit_code=139),
        exit_codes=(134, 135, 136, 139, -6, -7, -8, -11),
    ),
    Rule(
        name="timeout_program",
        category=Category.TIMEOUT_AMBIGUOUS,
        reason="command_timeout",
        why="timeout(1) exits with 124 when it ended its command (measured in a container)",
        example=_run(exit_code=124),
        exit_codes=(124,),
    ),
    Rule(
        name="program_missing",
        category=Category.INVALID_REQUEST,
        reason="program_missing",
        why="POSIX: 127 when a shell finds no such command; the image lacks git",
        example=_run(exit_code=127, program="git", text="sh: 1: git: not found"),
        exit_codes=(127,),
    ),
)
