"""`sandferry keys`: make and list the keys that open sealed secrets."""

from pathlib import Path

import typer

from worker.failures.model import InvalidRequest

app = typer.Typer(no_args_is_help=True)


@app.command()
def new() -> None:
    """Make a key; it seals from now on, older ones still open. Prints its public part, for the backend."""
    from worker.secrets import keyring  # noqa: PLC0415 - a command starts quickly

    made = keyring.new(_path())
    typer.echo(made.text)


@app.command("list")
def list_() -> None:
    """List the keys, newest first: id, when it was made, public part."""
    from worker.secrets import keyring  # noqa: PLC0415 - a command starts quickly

    for key in keyring.list_keys(_path()):
        typer.echo(f"{key.id}  {key.created:%Y-%m-%dT%H:%M:%SZ}  {key.text}")


def _path() -> Path:
    from worker.settings import settings  # noqa: PLC0415 - reads the settings

    path = settings().keyring_file
    if path is None:
        raise InvalidRequest("SANDFERRY_KEYRING_FILE", "not_set")
    return path
