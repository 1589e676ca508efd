"""The second act: what an agent did comes back, although git fails once on the way."""

import json
from pathlib import Path
from typing import Any

from worker.demo import failing_git
from worker.demo.show import Check, console, outcome, show
from worker.demo.sinks import leaks, redis_bytes
from worker.demo.stage import Stage
from worker.demo.watch import watch

_CAUSE = (
    "remote_workspace_operation_failed: operation=capture exit=1; "
    "remote_workspace_capture_failed: stage=archive exit=128 program=git helper_exit=1"
)


def play(scene: Stage, cloned: dict[str, Any], run_id: str) -> list[Check]:
    """Change the workspace as an agent would, copy it back with a git that fails once, show what arrived."""
    console.print("\n[bold]An agent works[/bold]; its work is copied back with a git that fails once:")
    changed = _work(Path(cloned["path"]))
    failing_git.arm(scene.home)
    request = {
        "schema": 1,
        "run_id": run_id,
        "sandbox": cloned["sandbox"],
        "path": cloned["path"],
        "commit": cloned["commit"],
        "baseline": cloned["baseline"],
    }
    before = scene.services.events.read(run_id)
    sent = scene.app.send_task("workspace.copy_back", kwargs={"request": request})
    watch(console, sent, run_id, scene.services.events, after=before[-1].seq)
    answer = outcome(sent)
    events = [event for event in scene.services.events.read(run_id) if event.seq > before[-1].seq]
    show(events, answer)
    (operation,) = scene.services.operations.of_run(run_id)
    console.print("\n[bold]Why the first attempt failed[/bold] (the first record; the path git printed is nowhere)")
    console.print(operation.stderr.strip(), markup=False)
    patch = _patch(scene, answer)
    console.print("\n[bold]Delivered[/bold]")
    console.print(patch.rstrip(), markup=False)
    retries = [event for event in events if event.name == "workspace.copy_back.retrying"]
    sinks = {"redis": redis_bytes(scene.services.client), "worker log": iter([scene.log.read_bytes()])}
    return [
        Check("the copy-back failed once and said which step, then arrived", len(retries) == 1 and bool(patch)),
        Check("its cause is the helper's own line", [cause for _, cause in operation.attempts] == [_CAUSE]),
        Check("the private path that git printed is nowhere", not leaks(iter([failing_git.PRIVATE]), sinks)),
        Check("all that changed arrived", answer.get("files") == changed),
    ]


def _work(checkout: Path) -> dict[str, int]:
    """What the agent does; the counts that must arrive."""
    readme = next(path for path in sorted(checkout.iterdir()) if path.is_file() and not path.is_symlink())
    readme.write_text(readme.read_text(errors="replace") + "\nAn agent was here.\n")
    (checkout / "agent").mkdir(exist_ok=True)
    (checkout / "agent" / "notes.md").write_text("# Notes\n\nFound the pier.\n")
    return {"added": 1, "modified": 1, "deleted": 0}


def _patch(scene: Stage, answer: dict[str, Any]) -> str:
    """The artifact's patch; empty if there is none."""
    store, _, digest = answer.get("artifact", "").partition("/sha256:")
    if not digest:
        return ""
    home = scene.home / "artifact"
    manifest = scene.services.artifact_store(store).fetch(digest, home)
    name = manifest["parts"][0]["patch"]
    return (home / name).read_text() if name else json.dumps(manifest["parts"])
