"""`sandferry operations` and `sandferry recover`: what became of copy-backs, and fetching what was kept."""

import json
import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated

import typer

from worker.stores.operations import GOOD, Operation

app = typer.Typer(no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]


@app.command("list")
def list_(
    run: Annotated[str, typer.Option(help="Only those of this run.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 20,
    as_json: Json = False,
) -> None:
    """List copy-backs, newest first."""
    from worker.retrying.services import services  # noqa: PLC0415 - reads the settings

    store = services().operations
    for operation in store.of_run(run, limit) if run else store.newest(limit):
        typer.echo(_json(operation) if as_json else _line(operation))


@app.command()
def show(operation_id: Annotated[str, typer.Argument(metavar="OPERATION")], as_json: Json = False) -> None:
    """Print one copy-back: its attempts with their causes, what to do next, and what only operators may see."""
    from worker.retrying.services import services  # noqa: PLC0415 - reads the settings

    operation = services().operations.read(operation_id)
    if operation is None:
        typer.echo("no such operation, or its record has expired", err=True)
        raise typer.Exit(1)
    if as_json:
        typer.echo(_json(operation))
        return
    typer.echo(_line(operation))
    typer.echo(f"sandbox   {operation.provider}/{operation.sandbox_id}")
    for attempt, cause in operation.attempts:
        typer.echo(f"attempt {attempt}  {cause}")
    if operation.result:
        typer.echo(f"artifact  {operation.result['artifact']}")
    for path in (operation.details or {}).get("conflicts", []):
        typer.echo(f"conflict  {path}")
    for kind, path in (operation.details or {}).get("omitted", []):
        typer.echo(f"omitted   {kind} {path}")
    for attempt, tail in services().diagnostics.read(operation.task_id):
        typer.echo(f"--- what the command of attempt {attempt} said, redacted ---\n{tail.rstrip()}")
    if operation.command:
        typer.echo(f"next      {operation.command}")


def recover(
    run_id: Annotated[str, typer.Argument(metavar="RUN")],
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the outcome.")] = False,
) -> None:
    """Copy back once more what failed copy-backs left in their sandboxes; no agent runs again."""
    from worker.commands.send import enqueue, wait_for  # noqa: PLC0415 - reads the settings
    from worker.retrying.services import services  # noqa: PLC0415 - same

    found = services().operations.of_run(run_id)
    if not found:
        typer.echo("this run has no copy-back, or its record has expired", err=True)
        raise typer.Exit(1)
    failed = left_behind(found)
    if not failed:
        newest = found[0]
        typer.echo(f"nothing to recover: the newest copy-back ({newest.operation_id}) is {newest.status}", err=True)
        raise typer.Exit(1)
    sent = [enqueue("workspace.copy_back", {**one.request, "recovers": one.operation_id}) for one in failed]
    for task in sent:
        typer.echo(f"op-{task.id}", err=wait)
    codes = [0]
    for task in sent if wait else ():
        try:
            wait_for(task, 3600)
        except typer.Exit as ended:
            codes.append(ended.exit_code)
    raise typer.Exit(max(codes))


def left_behind(newest_first: Iterable[Operation]) -> list[Operation]:
    """Of each workspace the last copy-back, if that failed: a run may have several workspaces and sandboxes."""
    last: dict[tuple[str, str, str], Operation] = {}
    for one in newest_first:
        last.setdefault((one.provider, one.sandbox_id, one.request.get("path", "")), one)
    return [one for one in last.values() if one.status not in GOOD and one.status != "running"]


def _line(operation: Operation) -> str:
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(operation.updated))
    cause = operation.cause or ""
    return f"{at}Z  {operation.operation_id}  {operation.run_id}  {operation.status}  {cause}".rstrip()


def _json(operation: Operation) -> str:
    record = asdict(operation) | {
        "stderr": operation.stderr,
        "metadata": operation.metadata,
        "next": operation.command,
    }
    return json.dumps(record)
