"""Waiting for a job with something to look at."""

import time
from typing import Any

from rich.console import Console

from worker.stores.events import Event, EventStore

TIMEOUT = 120.0
"""Seconds; the demo takes about 13."""

_SAYS = {
    "sandbox.initializing": "taking hold of a sandbox",
    "sandbox.ready": "sandbox is ready",
    "sandbox.git.started": "cloning",
    "sandbox.git.completed": "cloned",
    "sandbox.git.failed": "failed",
    "tool.dispatch.started": "checked: digest, arguments, effect",
    "tool.dispatch.sent": "the tool is started",
    "tool.dispatch.waiting": "it still runs: waiting for its receipt",
    "tool.dispatch.adopted": "its receipt was found",
    "tool.dispatch.completed": "done",
    "tool.dispatch.failed": "failed",
    "workspace.copy_back.started": "capturing the workspace",
    "workspace.copy_back.captured": "checking and delivering",
    "workspace.copy_back.completed": "delivered",
}


def watch(console: Console, sent: Any, run_id: str, store: EventStore, *, after: str = "-") -> None:
    """Show the run's progress, from event ``after`` on, until its job has ended. Raises TimeoutError."""
    end = time.monotonic() + TIMEOUT
    due = 0.0
    with console.status("waiting for the worker") as status:
        while not sent.ready():
            if time.monotonic() > end:
                raise TimeoutError("the job did not end in time")
            for event in store.read(run_id, after=after):
                after = event.seq
                due = event.time + float(event.data.get("delay_ms") or 0) / 1000
                console.print(f"  [dim]{_say(event)}[/dim]")
            left = due - time.time()
            status.update(f"next try in {left:.1f} s; the worker's slot is free" if left > 0 else "working")
            time.sleep(0.1)


def _say(event: Event) -> str:
    if event.name.endswith(".retrying"):
        seconds = float(event.data["delay_ms"] or 0) / 1000
        return f"attempt {event.data['attempt']} failed ({event.data['reason']}); trying again in {seconds:g} s"
    return _SAYS.get(event.name, event.name)
