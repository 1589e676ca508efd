"""The first act: a repository into a sandbox, through a token that GitHub does not know yet."""

import json
import time
import uuid
from pathlib import Path
from typing import Any

from worker.demo import repositories, sinks
from worker.demo.failing_git import search_path
from worker.demo.show import Check, console, outcome, show
from worker.demo.stage import Stage
from worker.demo.watch import watch
from worker.stores.events import Event


def private(scene: Stage) -> tuple[dict[str, Any], str, list[Check]]:
    """Clone through a token that GitHub does not know yet; the result, the run and what was checked."""
    run_id = f"demo-{uuid.uuid4().hex[:8]}"
    console.print("A private repository, and a token that GitHub needs 8 s to know:")
    with sinks.ArgvWatch() as argv:
        sent = _send(scene, run_id, repositories.PRIVATE, {"kind": "github_app"})
        _until_event(scene, run_id, "sandbox.git.retrying", 2)
        other = _send(scene, f"{run_id}-other", repositories.PUBLIC, {"kind": "none"})
        watch(console, sent, run_id, scene.services.events)
        other.get(timeout=60, propagate=False)
    result = outcome(sent)
    events = scene.services.events.read(run_id)
    show(events, result)
    between = scene.services.events.read(f"{run_id}-other")
    checks = [*_clone_checks(scene, events, result), _slot_check(events, between), _secret_check(scene, argv, result)]
    return result, run_id, checks


def public(scene: Stage, url: str) -> tuple[dict[str, Any], str, list[Check]]:
    """Clone the user's own address, without a credential."""
    run_id = f"demo-{uuid.uuid4().hex[:8]}"
    console.print("Your repository, without a credential:")
    sent = scene.app.send_task("sandbox.clone", kwargs={"request": _request(scene, run_id, url, {"kind": "none"})})
    watch(console, sent, run_id, scene.services.events)
    result = outcome(sent)
    show(scene.services.events.read(run_id), result)
    return result, run_id, [Check("the repository was cloned", "commit" in result)]


def _request(scene: Stage, run_id: str, url: str, credential: dict[str, Any]) -> dict[str, Any]:
    return {
        "schema": 1,
        "run_id": run_id,
        "sandbox": {"provider": scene.provider, "spec": {"env": {"PATH": search_path(scene.home)}}},
        "repository": {"url": url},
        "credential": credential,
        "after": {"keep": 600},
    }


def _send(scene: Stage, run_id: str, name: str, credential: dict[str, Any]) -> Any:
    url = scene.github.git_url(repositories.OWNER, name)
    return scene.app.send_task("sandbox.clone", kwargs={"request": _request(scene, run_id, url, credential)})


def _until_event(scene: Stage, run_id: str, name: str, count: int) -> None:
    end = time.monotonic() + 60
    while sum(event.name == name for event in scene.services.events.read(run_id)) < count:
        if time.monotonic() > end:
            return
        time.sleep(0.05)


def _clone_checks(scene: Stage, events: list[Event], result: dict[str, Any]) -> list[Check]:
    retries = [event.data for event in events if event.name == "sandbox.git.retrying"]
    plan = [(data["reason"], data["delay_ms"]) for data in retries]
    counts = scene.github.counts
    waited = [
        after.time - before.time
        for before, after in zip(_at(events, "retrying"), _at(events, "started")[1:], strict=False)
    ]
    return [
        Check(
            "rejected twice, retried after 3 s and 9 s",
            plan == [("token_replication", 3000), ("token_replication", 9000)],
        ),
        Check("the waits were those", [round(seconds) for seconds in waited] == [3, 9]),
        Check("one mint, one token for all three attempts", counts["mints"] == 1),
        Check("the token was revoked afterwards", counts["revokes"] == 1),
        Check("cloned: HEAD is the commit of the result", _head(result) == result.get("commit") is not None),
    ]


def _at(events: list[Event], name: str) -> list[Event]:
    return [event for event in events if event.name == f"sandbox.git.{name}"]


def _head(result: dict[str, Any]) -> str | None:
    git = Path(result.get("path", "/nowhere")) / ".git"
    try:
        head = (git / "HEAD").read_text().strip().removeprefix("ref: ")
        return (git / head).read_text().strip()
    except OSError:
        return None


def _slot_check(events: list[Event], between: list[Event]) -> Check:
    """Whether another job ran in the worker's only slot while this one waited."""
    waits = _at(events, "retrying")
    inside = bool(waits) and any(
        waits[-1].time < event.time < waits[-1].time + 9 for event in _at(between, "completed")
    )
    return Check("no slot slept: another clone ran in the only slot during the wait", inside)


def _secret_check(scene: Stage, argv: sinks.ArgvWatch, result: dict[str, Any]) -> Check:
    found = sinks.leaks(
        iter(scene.github.grants),
        {
            "argv": iter(argv.seen),
            "redis": sinks.redis_bytes(scene.services.client),
            "worker log": iter([scene.log.read_bytes()]),
            "result": iter([json.dumps(result).encode()]),
            "sandboxes": sinks.file_bytes(scene.home / "sandboxes"),
            "diagnostics": sinks.file_bytes(scene.home / "diagnostics"),
        },
    )
    where = "argv, messages, results, events, logs, sandbox files"
    return Check(f"no secret in {where}" if not found else f"a secret was found in: {', '.join(found)}", not found)
