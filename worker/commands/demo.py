"""`sandferry demo`."""

from typing import Annotated

import typer


def demo(
    repo: Annotated[str | None, typer.Option(help="Clone your own: a path, or an https address.")] = None,
) -> None:
    """Show a worker clone a private repository through a token that GitHub has not replicated yet."""
    from worker.demo.run import run  # noqa: PLC0415 - only here

    if not run(repo):
        raise typer.Exit(1)
