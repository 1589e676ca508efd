"""`sandferry send`: enqueue a job by hand."""

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer


def send(
    task: Annotated[str, typer.Argument(help="The name of a job, such as sandbox.clone.")],
    request: Annotated[Path, typer.Argument(help="A JSON file; - reads standard input.")],
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the outcome.")] = False,
    timeout: Annotated[float, typer.Option(help="Seconds to wait.", min=1)] = 3600,
) -> None:
    """Enqueue a job. With --wait: prints its result; exits 1 with the cause line if it failed."""
    payload = _read(request)
    from worker.app import JOBS  # noqa: PLC0415 - reads the settings

    if task not in JOBS:
        raise typer.BadParameter(f"there are {', '.join(JOBS)}", param_hint="TASK")
    sent = enqueue(task, payload)
    typer.echo(sent.id, err=wait)
    if wait:
        wait_for(sent, timeout)


def enqueue(task: str, request: Any) -> Any:
    """Send a job; raises OperationalError when the broker or the result backend does not answer."""
    from kombu.exceptions import OperationalError  # noqa: PLC0415 - a command starts quickly

    from worker.app import app  # noqa: PLC0415 - reads the settings
    from worker.retrying.stamp import HEADER  # noqa: PLC0415 - same

    stamp = {HEADER: {"v": 1, "sent_at": time.time()}}
    try:
        return app.send_task(task, kwargs={"request": request}, headers=stamp)
    except RuntimeError:
        pass  # how Celery's Redis backend says that it cannot be reached
    raise OperationalError


def _read(path: Path) -> Any:
    text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    try:
        return json.loads(text)
    except json.JSONDecodeError as exc:
        raise typer.BadParameter(f"not JSON: line {exc.lineno} column {exc.colno}", param_hint="REQUEST") from None


def wait_for(sent: Any, timeout: float) -> None:
    """Print a job's result; exit 1 with its cause line, 3 if it does not end in ``timeout`` seconds."""
    from celery.exceptions import TimeoutError as WaitTimeout  # noqa: PLC0415 - a sender that does not wait is quick

    from worker.retrying.failed import TaskFailed  # noqa: PLC0415 - same

    try:
        typer.echo(json.dumps(sent.get(timeout=timeout), indent=2))
    except TaskFailed as failed:
        typer.echo(str(failed), err=True)
        raise typer.Exit(1) from None
    except WaitTimeout:
        typer.echo(f"no outcome after {timeout:g} s; the job goes on. Is a worker running?", err=True)
        raise typer.Exit(3) from None
