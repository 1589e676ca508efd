"""`sandferry seal`: seal a token for one job, as a backend would."""

import sys
import time
from pathlib import Path
from typing import Annotated, Literal

import typer

Operation = Literal["clone"]
"""What takes a sealed secret."""


def seal(  # noqa: PLR0917 - Typer calls it by name
    run: Annotated[str, typer.Option(help="The run it is for.")],
    url: Annotated[str, typer.Option(help="The repository it is for.")] = "",
    tool: Annotated[str, typer.Option(help="Or the tool it is for: name@sha256:...; --username is the variable.")] = "",
    operation: Annotated[Operation, typer.Option(help="What it is for; a tool is always dispatched.")] = "clone",
    expires_in: Annotated[float, typer.Option(help="Seconds it may be used.", min=1)] = 3600,
    minted: Annotated[bool, typer.Option("--minted", help="The token is fresh from GitHub.")] = False,
    username: Annotated[str, typer.Option(help="The user name that goes with it.")] = "x-access-token",
    token_file: Annotated[Path, typer.Option(help="Where the token is; - reads standard input.")] = Path("-"),
    public_key: Annotated[str, typer.Option(help="Of the worker; default: the current key of the ring.")] = "",
) -> None:
    """Print a box for a request's `credential`. The token is read from a file or standard input, never argv."""
    from pydantic import SecretStr  # noqa: PLC0415 - a command starts quickly

    from worker.retrying.message import RUN_ID  # noqa: PLC0415 - same
    from worker.secrets.keys import read_public_key  # noqa: PLC0415 - same
    from worker.secrets.sealed import Plaintext, git_subject  # noqa: PLC0415 - same
    from worker.secrets.sealed import seal as seal_box  # noqa: PLC0415 - same
    from worker.secrets.subject import tool_subject  # noqa: PLC0415 - same
    from worker.tools.package import Reference  # noqa: PLC0415 - same

    if not RUN_ID.fullmatch(run):
        raise typer.BadParameter("letters, digits and _ . : - only", param_hint="--run")
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise typer.BadParameter("a URL with a user name; the token is read from a file", param_hint="--url")
    token = (sys.stdin.read() if str(token_file) == "-" else token_file.read_text(encoding="utf-8")).strip()
    now = time.time()
    plaintext = Plaintext(
        run_id=run,
        operation="dispatch" if tool else operation,
        subject=tool_subject(Reference.parse(tool).digest) if tool else git_subject(url, field_name="--url"),
        expires_at=now + expires_in,
        minted_at=now if minted else None,
        username=username,
        secret=SecretStr(token),
    )
    try:
        key = read_public_key(public_key) if public_key else _current_key()
    except ValueError:
        raise typer.BadParameter("not a key of `sandferry keys list`", param_hint="--public-key") from None
    typer.echo(seal_box(key, plaintext))


def _current_key() -> bytes:
    from worker.retrying.services import services  # noqa: PLC0415 - reads the settings

    return services().keyring.current.public_key
