"""The processes of the service: `sandferry worker`, `beat`, `flower` and `valkey`."""

from pathlib import Path
from typing import Annotated

import typer


def worker(
    context: typer.Context,
    queues: Annotated[str, typer.Option("--queues", "-Q", help="Comma-separated; all of them by default.")] = "",
    concurrency: Annotated[int, typer.Option("--concurrency", "-c", min=1, help="Bodies at once.")] = 4,
    pool: Annotated[str, typer.Option("--pool", "-P", help="prefork or threads.")] = "prefork",
    name: Annotated[str, typer.Option("--name", "-n", help="Node name, unique; default: its queues@host.")] = "",
) -> None:
    """Run jobs. Further options go to `celery worker` as they are."""
    from worker.app import QUEUES  # noqa: PLC0415 - reads the settings

    if pool not in {"prefork", "threads"}:
        raise typer.BadParameter("prefork or threads", param_hint="--pool")
    wanted = queues.split(",") if queues else list(QUEUES)
    if unknown := sorted(set(wanted) - set(QUEUES)):
        raise typer.BadParameter(f"unknown queue {unknown[0]!r}; there are {', '.join(QUEUES)}", param_hint="--queues")
    node = name or f"{'-'.join(wanted) if queues else 'sandferry'}@%h"
    named = ["-Q", ",".join(wanted), "-c", str(concurrency), "-P", pool, "-n", node]
    _celery(["worker", *named, *context.args])


def _celery(arguments: list[str]) -> None:
    """Hand over to Celery's own command line; its usage errors are one line, its exit code is ours.

    `Celery.start` and `Celery.worker_main` lose that code: a worker that could not start would end with 0.
    """
    from celery.bin.celery import celery  # noqa: PLC0415 - a command starts quickly
    from click import ClickException  # noqa: PLC0415 - Celery's, not Typer's

    from worker.app import app  # noqa: PLC0415 - reads the settings

    celery.params[0].default = app
    try:
        code = celery.main(args=arguments, standalone_mode=False)
    except ClickException as exc:
        raise typer.BadParameter(exc.format_message()) from None
    if code:
        raise typer.Exit(int(code))


def beat() -> None:
    """Send the periodic sweep. Run one; a second does no harm."""
    # The in-memory scheduler: one entry that is always due again soon needs no file.
    _celery(["beat", "--scheduler", "celery.beat:Scheduler", "--pidfile="])


def flower(context: typer.Context) -> None:
    """Show workers and tasks in a browser, on 127.0.0.1:5555. Options go to `celery flower` as they are."""
    from importlib.util import find_spec  # noqa: PLC0415 - only here

    if find_spec("flower") is None:
        raise typer.BadParameter("Flower is not installed: pip install 'sandferry[flower]'")
    from worker import observability  # noqa: PLC0415 - reads nothing, but is not needed by the others

    config = Path(observability.__path__[0], "flowerconfig.py")
    _celery(["flower", f"--conf={config}", *context.args])


def valkey(
    port: Annotated[int, typer.Option(help="TCP port on 127.0.0.1.")] = 6379,
    data: Annotated[Path | None, typer.Option(help="Where to keep data; kept between runs. Default: nowhere.")] = None,
) -> None:
    """Run the embedded Valkey in the foreground: a broker for development. It keeps nothing, but with --data."""
    import signal  # noqa: PLC0415 - only here
    import threading  # noqa: PLC0415 - same

    from worker.demo.broker import embedded  # noqa: PLC0415 - same

    with embedded(port=port, data=data) as url:
        asked = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: asked.set())
        typer.echo(f"valkey is ready at {url}; end it with Ctrl-C")
        asked.wait()
