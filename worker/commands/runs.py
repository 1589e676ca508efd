"""`sandferry runs`: the timeline of a run, and the runs heard of last."""

import json
import time
from typing import Annotated

import typer

from worker.observability.timeline import line
from worker.stores.events import Event

app = typer.Typer(no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]


@app.command()
def show(
    run_id: Annotated[str, typer.Argument(metavar="RUN")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as events come.")] = False,
    as_json: Json = False,
) -> None:
    """Print what happened: seconds since the first event, its name, and its data."""
    from worker.retrying.services import services  # noqa: PLC0415 - reads the settings

    store = services().events
    events = store.read(run_id)
    if not events and not follow:
        typer.echo("no such run, or its events have expired", err=True)
        raise typer.Exit(1)
    start = events[0].time if events else time.time()
    for event in events:
        typer.echo(to_json(event) if as_json else line(event, start))
    if follow:
        for later in store.follow(run_id, after=events[-1].seq if events else "0"):
            if later is not None:
                typer.echo(to_json(later) if as_json else line(later, start))


@app.command("list")
def list_(limit: Annotated[int, typer.Option(min=1, max=1000)] = 20, as_json: Json = False) -> None:
    """List the runs heard of last, with their last event."""
    from worker.retrying.services import services  # noqa: PLC0415 - reads the settings

    store = services().events
    for run_id, at in store.runs(limit):
        last = store.last(run_id)
        name = last.name if last else ""
        if as_json:
            typer.echo(json.dumps({"run_id": run_id, "last_event_at": at, "last_event": name}))
        else:
            typer.echo(f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(at))}Z  {run_id}  {name}")


def to_json(event: Event) -> str:
    """One event as a JSON object."""
    return json.dumps({"seq": event.seq, "time": event.time, "name": event.name, "data": event.data})
