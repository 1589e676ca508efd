"""The `sandferry` command."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from worker.commands import cancel, demo, doctor, explain, keys, operations, processes, runs, seal, send, tools

app = typer.Typer(
    name="sandferry",
    help="Ferries code into agent sandboxes, runs managed tools there, and ferries the work out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value
    """Print the version, and end."""
    if wanted:
        typer.echo(f"sandferry {version('sandferry')}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool | None,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version, and end."),
    ] = None,
) -> None:
    """Options that stand before a command."""


app.command("worker", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(processes.worker)
app.command("beat")(processes.beat)
app.command("flower", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(processes.flower)
app.command("valkey")(processes.valkey)
app.command("send")(send.send)
app.command("cancel")(cancel.cancel)
app.command("seal")(seal.seal)
app.command("recover")(operations.recover)
app.command("doctor")(doctor.doctor)
app.command("demo")(demo.demo)
app.command("explain")(explain.explain)
app.add_typer(keys.app, name="keys", help="The key ring that opens sealed secrets.")
app.add_typer(runs.app, name="runs", help="What happened, run by run.")
app.add_typer(tools.app, name="tools", help="Packages of managed tools.")
app.add_typer(operations.app, name="operations", help="Copy-backs and what became of them.")


def main() -> None:
    """Run the command line; a fault of the installation is one line with advice, never a traceback."""
    from kombu.exceptions import OperationalError  # noqa: PLC0415 - a command that needs no settings starts sooner
    from pydantic import ValidationError  # noqa: PLC0415 - same

    from worker.commands.faults import explain as what_is_wrong  # noqa: PLC0415 - same
    from worker.failures.model import InvalidRequest  # noqa: PLC0415 - same
    from worker.secrets.keyring import KeyRingError  # noqa: PLC0415 - same
    from worker.stores.redis import StoreError  # noqa: PLC0415 - same

    try:
        app()
    except (ValidationError, InvalidRequest, KeyRingError, StoreError, OperationalError, OSError) as exc:
        typer.echo(what_is_wrong(exc), err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
