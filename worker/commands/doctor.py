"""`sandferry doctor`: is everything here that the service needs? Each fault comes with advice."""

import json
from collections.abc import Callable
from typing import Annotated

import typer

from worker.commands.checks import CHECKS, Finding
from worker.commands.places import places
from worker.settings import Settings, settings

MARKS = {"ok": "ok  ", "warning": "warn", "fault": "FAIL"}


def doctor(as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False) -> None:
    """Check this installation; exits 1 if something keeps it from working."""
    config = settings()
    findings = [finding for check in (*CHECKS, places) for finding in _run(check, config)]
    for finding in findings:
        if as_json:
            typer.echo(json.dumps({"check": finding.check, "level": finding.level, "advice": finding.advice}))
        else:
            typer.echo(f"{MARKS[finding.level]}  {finding.check}" + (f": {finding.advice}" if finding.advice else ""))
    if any(finding.level == "fault" for finding in findings):
        raise typer.Exit(1)


def _run(check: Callable[[Settings], list[Finding]], config: Settings) -> list[Finding]:
    try:
        return check(config)
    except Exception as exc:  # noqa: BLE001 - a check that breaks is itself a finding
        return [Finding(check.__name__, "fault", f"could not be checked ({type(exc).__name__})")]
