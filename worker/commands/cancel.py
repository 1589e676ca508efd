"""`sandferry cancel`."""

from typing import Annotated

import typer


def cancel(run_id: Annotated[str, typer.Argument(metavar="RUN")]) -> None:
    """Cancel a run: what runs in its sandboxes is ended, its waiting and future jobs do nothing."""
    from worker.failures.model import InvalidRequest  # noqa: PLC0415 - a command starts quickly
    from worker.retrying.message import RUN_ID  # noqa: PLC0415 - same
    from worker.retrying.services import services  # noqa: PLC0415 - same

    if not RUN_ID.fullmatch(run_id):
        raise InvalidRequest("run_id", "bad_value")
    services().attempts.cancel(run_id)
    typer.echo("cancelled; its running jobs end within a few seconds")
