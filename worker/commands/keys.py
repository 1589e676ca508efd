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
    """List the keys, oldest first: id, when it was made, public part. The last one seals."""
    from worker.secrets import keyring  # noqa: PLC0415 - a command starts quickly

    for key in keyring.list_keys(_path()):
        typer.echo(f"{key.id}  {key.created:%Y-%m-%dT%H:%M:%SZ}  {key.text}")


@app.command()
def retire(key_id: str) -> None:
    """Remove a key for good: what was sealed to it cannot be opened any more."""
    from worker.secrets import keyring  # noqa: PLC0415 - a command starts quickly

    if not keyring.retire(_path(), key_id):
        typer.echo("no such key", err=True)
        raise typer.Exit(1)


def _path() -> Path:
    from worker.settings import settings  # noqa: PLC0415 - reads the settings

    path = settings().keyring_file
    if path is None:
        raise InvalidRequest("SANDFERRY_KEYRING_FILE", "not_set")
    return path
