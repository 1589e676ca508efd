"""`sandferry tools`: build, verify, show and push tool packages."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from worker.tools.package import Descriptor
    from worker.tools.package import Package as PackageOf

app = typer.Typer(no_args_is_help=True)

ARCHIVE_MAX = 1024 * 1024 * 1024
"""Bytes that `verify` and `show` read at most, whatever a worker's settings allow."""

Package = Annotated[Path, typer.Argument(help="A tool's directory, or an archive that `build` made.")]


@app.command()
def build(
    directory: Annotated[
        Path, typer.Argument(help="The tool: manifest.json and its files.", exists=True, file_okay=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the archive goes.")] = Path(),
) -> None:
    """Make the archive of a tool and print its name, `name@sha256:...`: what a request pins."""
    from worker.settings import settings  # noqa: PLC0415 - a command starts quickly
    from worker.tools.directory import build as build_package  # noqa: PLC0415 - same

    if output.resolve().is_relative_to(directory.resolve()):
        # The archive would be a file of the tool when it is built again, under another digest.
        raise typer.BadParameter("is inside the tool's directory", param_hint="'--output' / '-o'")
    config = settings()
    package = build_package(directory, limit=config.tool_package_max)
    _require_timeout(package.descriptor.manifest.timeout, config.tool_timeout_max)
    reference = package.descriptor.reference
    output.mkdir(parents=True, exist_ok=True)
    target = output / f"{reference.name}-{reference.digest}.tar"
    target.write_bytes(package.archive)
    typer.echo(str(target), err=True)
    typer.echo(str(reference))


@app.command()
def verify(
    package: Package,
    reference: Annotated[str, typer.Argument(help="What it should be: name@sha256:...")] = "",
) -> None:
    """Check every byte of a package, and its name if one is given. Prints the name; exits 2 with the reason."""
    from worker.failures.model import InvalidRequest  # noqa: PLC0415 - a command starts quickly

    found = str(_read(package).descriptor.reference)
    if reference and found != reference:
        raise InvalidRequest("tool", "digest_mismatch")
    typer.echo(found)


@app.command()
def show(
    package: Annotated[str, typer.Argument(help="A directory, an archive, or name@sha256:... of a store.")],
    store: Annotated[str, typer.Option(help="The store that a name is looked up in.")] = "default",
) -> None:
    """Print what a package is: its name, its effect, its manifest, its files."""
    path = Path(package)
    descriptor = _read(path).descriptor if path.exists() else _stored(package, store)
    content = json.loads(descriptor.text)
    about = {"package": str(descriptor.reference), "effect": str(descriptor.manifest.declared)}
    typer.echo(json.dumps({**about, "manifest": content["manifest"], "files": content["files"]}, indent=2))


@app.command()
def push(
    package: Package,
    store: Annotated[str, typer.Option(help="The store, by the name that settings give it.")] = "default",
) -> None:
    """Put a package into a store of the settings, checked first. Prints its name."""
    from worker.retrying.services import services  # noqa: PLC0415 - reads the settings

    config = services().settings
    made = _read(package, config.tool_package_max)
    _require_timeout(made.descriptor.manifest.timeout, config.tool_timeout_max)
    new = services().tools(store).put(made)
    typer.echo(f"{'pushed to' if new else 'already in'} {store}", err=True)
    typer.echo(str(made.descriptor.reference))


def _read(path: Path, limit: int = ARCHIVE_MAX) -> "PackageOf":
    from worker.tools.directory import build as build_package  # noqa: PLC0415 - a command starts quickly
    from worker.tools.package import unpack  # noqa: PLC0415 - same

    if path.is_dir():
        return build_package(path, limit=limit)
    with path.open("rb") as file:
        return unpack(file.read(limit + 1), limit=limit)


def _stored(reference: str, store: str) -> "Descriptor":
    from worker.retrying.services import services  # noqa: PLC0415 - reads the settings
    from worker.tools.package import Reference  # noqa: PLC0415 - a command starts quickly

    return services().tools(store).describe(Reference.parse(reference))


def _require_timeout(seconds: int, most: float) -> None:
    from worker.failures.model import InvalidRequest  # noqa: PLC0415 - a command starts quickly

    if seconds > most:
        raise InvalidRequest("manifest_timeout", "out_of_range")
