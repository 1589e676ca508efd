"""`sandferry explain`: how a failure would be judged, what would follow, and what would leave the worker."""

import sys
from typing import Annotated

import typer

OPERATIONS = ("clone", "copy_back", "dispatch", "lifecycle")


def explain(  # noqa: PLR0917 - Typer calls it by name
    text: Annotated[str, typer.Argument(help="What was printed or raised; default: standard input.")] = "",
    operation: Annotated[str, typer.Option(help="clone, copy_back, dispatch or lifecycle.")] = "clone",
    provider: Annotated[str, typer.Option(help="Of the sandbox.")] = "none",
    credential: Annotated[str, typer.Option(help="none, static or minted.")] = "none",
    credential_age: Annotated[float | None, typer.Option(min=0, help="Seconds since it was minted.")] = None,
    exit_code: Annotated[int | None, typer.Option(help="Of the command.")] = None,
    http_status: Annotated[int | None, typer.Option(help="Of the answer.")] = None,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Failures on standard input, one JSON object a line.")] = False,
) -> None:
    """Say how a failure is judged, what the worker would do, and what an operator can do."""
    from worker.commands.explaining import Malformed, failure_of, lines, stream  # noqa: PLC0415 - a command starts quickly

    if operation not in {*OPERATIONS, "copyback"}:
        raise typer.BadParameter(f"there are {', '.join(OPERATIONS)}", param_hint="--operation")
    if jsonl:
        raise typer.Exit(stream(sys.stdin.buffer))
    facts = {
        "text": text or sys.stdin.buffer.read().decode(errors="replace"),
        "operation": operation,
        "provider": provider,
        "credential": credential,
        "credential_age": credential_age,
        "exit_code": exit_code,
        "http_status": http_status,
    }
    try:
        failure = failure_of(facts)
    except Malformed as exc:
        raise typer.BadParameter(str(exc)) from None
    for name, value in lines(failure):
        typer.echo(f"{name:<10}{value}")
