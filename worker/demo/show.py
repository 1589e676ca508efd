"""What the acts of the demo show: progress, timelines, results, checks."""

import json
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from worker.observability.timeline import line
from worker.retrying.failed import TaskFailed
from worker.stores.events import Event

console = Console(highlight=False, soft_wrap=True)


@dataclass(frozen=True, slots=True)
class Check:
    """Something the demo promises, and whether it held."""

    what: str
    held: bool


def outcome(sent: Any) -> dict[str, Any]:
    """The result of a job that has ended, or ``{"failed": cause line}``."""
    try:
        result: dict[str, Any] = sent.get(timeout=10)
    except TaskFailed as failed:
        return {"failed": str(failed)}
    return result


def show(events: list[Event], result: dict[str, Any]) -> None:
    """Print a timeline and a result."""
    console.print("\n[bold]Timeline[/bold]")
    for event in events:
        console.print(line(event, events[0].time), markup=False)
    console.print("\n[bold]Result[/bold]")
    console.print(json.dumps(result, indent=2), markup=False)


def report(checks: list[Check]) -> bool:
    """Print what was checked; whether all of it held."""
    table = Table(title="Checked", title_justify="left", show_header=False, box=None)
    for check in checks:
        table.add_row("[green]ok[/green]" if check.held else "[red]FAILED[/red]", check.what)
    console.print()
    console.print(table)
    return all(check.held for check in checks)
