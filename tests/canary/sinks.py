"""Where a secret could come out. A row here is a column of the matrix."""

import urllib.request
from collections.abc import Callable, Iterator, Mapping

from tests.canary.stage import Stage
from worker.demo.sinks import file_bytes, redis_bytes
from worker.sandboxes.base import LABEL_RUN
from worker.sandboxes.deadline import Deadline

RESULTS = b"celery-task-meta-"
EVENTS = b"sandferry:events:"
RECORDS = b"sandferry:"


def _traffic(stage: Stage, *, holds: bytes = b"", lacks: tuple[bytes, ...] = ()) -> Iterator[bytes]:
    lines = (line for line in list(stage.traffic) if holds in line)
    return (line for line in lines if not any(word in line for word in lacks))


def _kept(stage: Stage, *, starts: bytes = b"", lacks: tuple[bytes, ...] = ()) -> Iterator[bytes]:
    chunks = (chunk for chunk in redis_bytes(stage.made.services.client) if chunk.startswith(starts))
    return (chunk for chunk in chunks if not chunk.startswith(lacks))


def _client(stage: Stage) -> Iterator[bytes]:
    return (f"{sent.result!r} {sent.traceback}".encode() for sent in stage.jobs)


def _log(stage: Stage) -> Iterator[bytes]:
    return (path.read_bytes() for path in (*(worker.log for worker in stage.made.workers), stage.flower.log))


def _inspected(stage: Stage) -> Iterator[bytes]:
    yield from list(stage.inspected)
    inspect = stage.made.app.control.inspect(timeout=2.0)
    for ask in (inspect.stats, inspect.conf, inspect.registered, inspect.report, inspect.revoked):
        yield str(ask()).encode()


def _flower_api(stage: Stage) -> Iterator[bytes]:
    yield stage.flower.text("/api/tasks").encode()
    yield stage.flower.text("/api/workers?refresh=1").encode()
    for sent in stage.jobs:
        if stage.flower.status(path := f"/api/task/info/{sent.id}", stage.flower.user) == 200:
            yield stage.flower.text(path).encode()


def _flower_pages(stage: Stage) -> Iterator[bytes]:
    yield stage.flower.page("/tasks").encode()
    for name in stage.flower.api("/workers?status=1"):
        yield stage.flower.text(f"/worker/{name}").encode()
    for sent in stage.jobs:
        if stage.flower.status(path := f"/task/{sent.id}", stage.flower.user) == 200:
            yield stage.flower.text(path).encode()


def _prometheus(stage: Stage) -> Iterator[bytes]:
    with urllib.request.urlopen(f"http://127.0.0.1:{stage.metrics_port}/metrics", timeout=10) as reply:
        yield reply.read()


def _git_config(stage: Stage) -> Iterator[bytes]:
    root = stage.made.services.settings.local_root
    return (path.read_bytes() for path in root.rglob("config") if path.parent.name == ".git")


def _sandbox_env(stage: Stage) -> Iterator[bytes]:
    """What a process that an agent starts after the job finds."""
    for run_id, cloned in stage.clones:
        provider = stage.made.services.providers.get(cloned["sandbox"]["provider"])
        sandbox = provider.connect(cloned["sandbox"]["id"], {LABEL_RUN: run_id}, deadline=Deadline.after(30))
        done = sandbox.run(["sh", "-c", "env; git config --list --show-origin"], cwd=cloned["path"],
                           deadline=Deadline.after(30))  # fmt: skip
        yield done.stdout + done.stderr


SINKS: Mapping[str, Callable[[Stage], Iterator[bytes]]] = {
    "broker": lambda s: _traffic(s, lacks=(RESULTS, RECORDS)),
    "results": lambda s: (*_traffic(s, holds=RESULTS), *_kept(s, starts=RESULTS)),
    "records as written": lambda s: _traffic(s, holds=RECORDS, lacks=(EVENTS,)),
    "redis at the end": lambda s: _kept(s, lacks=(RESULTS, EVENTS)),
    "run events": lambda s: (*_traffic(s, holds=EVENTS), *_kept(s, starts=EVENTS)),
    "celery events": lambda s: iter(s.events),
    "logs": _log,
    "inspect": _inspected,
    "flower api": _flower_api,
    "flower pages": _flower_pages,
    "sentry": lambda s: iter(s.sentry.raw),
    "prometheus": _prometheus,
    "diagnostics": lambda s: file_bytes(s.made.home / "diagnostics"),
    "argv": lambda s: iter(s.argv.seen),
    ".git/config": _git_config,
    "sandbox env": _sandbox_env,
    "client": _client,
}
