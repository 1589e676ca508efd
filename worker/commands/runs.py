"""`sandferry runs`: the timeline of a run, and the runs heard of last."""

import json
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated

import typer

from worker.observability.timeline import line
from worker.stores.events import Event, EventStore

app = typer.Typer(no_args_is_help=True)

SEARCHED = 1000
"""Runs that are looked through for failed ones."""

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
    if not events:
        typer.echo("nothing of this run yet: waiting (Ctrl-C ends it)", err=True)
    start = events[0].time if events else time.time()
    for event in events:
        typer.echo(to_json(event) if as_json else line(event, start))
    if follow:
        for later in store.follow(run_id, after=events[-1].seq if events else "0"):
            if later is not None:
                typer.echo(to_json(later) if as_json else line(later, start))


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 20,
    failed: Annotated[bool, typer.Option("--failed", help="Only runs with a job that failed for good.")] = False,
    as_json: Json = False,
) -> None:
    """List the runs heard of last, with their last event and, if that is a failure, its cause."""
    from worker.retrying.services import services  # noqa: PLC0415 - reads the settings

    store = services().events
    rows = _failed(store, limit) if failed else _last(store, limit)
    for run_id, at, event in rows:
        name, cause = (event.name, event.data.get("cause") or "") if event else ("", "")
        if as_json:
            typer.echo(json.dumps({"run_id": run_id, "last_event_at": at, "last_event": name, "cause": cause}))
        else:
            when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))
            typer.echo(f"{when}Z  {run_id}  {name}  {cause}".rstrip())


Row = tuple[str, float, Event | None]
"""Run id, epoch seconds of its last event, and the event that is shown."""


def _last(store: EventStore, limit: int) -> Iterator[Row]:
    return ((run_id, at, store.last(run_id)) for run_id, at in store.runs(limit))


def _failed(store: EventStore, limit: int) -> Iterator[Row]:
    """The failed among the :data:`SEARCHED` newest runs."""
    found = ((run_id, at, failure(store.read(run_id))) for run_id, at in store.runs(SEARCHED))
    return islice((row for row in found if row[2] is not None), limit)


def failure(events: Iterable[Event]) -> Event | None:
    """The last failure of a run that nothing made good: no later job of the same kind was completed."""
    open_: dict[str, Event] = {}
    for event in events:
        job, _, step = event.name.rpartition(".")
        if step == "completed":
            open_.pop(job, None)
        elif step == "failed" and "cause" in event.data:
            open_[job] = event
    return max(open_.values(), key=lambda event: event.time, default=None)


def to_json(event: Event) -> str:
    """One event as a JSON object."""
    return json.dumps({"seq": event.seq, "time": event.time, "name": event.name, "data": event.data})
