"""`sandferry demo`."""

import importlib.util
from enum import StrEnum
from typing import Annotated

import typer


class Provider(StrEnum):
    """Providers that need nothing but this machine to be shown."""

    LOCAL = "local"
    DAYTONA = "daytona"
    E2B = "e2b"


def demo(
    repo: Annotated[str | None, typer.Option(help="Clone your own: a path, or an https address.")] = None,
    provider: Annotated[
        Provider, typer.Option(help="Whose driver to show; a hosted one against a double on loopback.")
    ] = Provider.LOCAL,
) -> None:
    """Show a clone, a copy-back and managed tools on real parts, with faults (half a minute)."""
    from worker.demo.run import run  # noqa: PLC0415 - only here

    if provider is not Provider.LOCAL and importlib.util.find_spec(provider.value) is None:
        typer.echo(f"The SDK is not installed: pip install 'sandferry[{provider.value}]'", err=True)
        raise typer.Exit(2)
    if not run(repo, provider.value):
        raise typer.Exit(1)
