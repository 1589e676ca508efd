"""`make demo`: a real worker, a real broker, real git; each act says what it checked."""

from pathlib import Path

from worker.demo import clone_act, copy_back_act, repositories, tools_act
from worker.demo.show import Check, console, report
from worker.demo.stage import Stage, stage


def run(repo: str | None, provider: str = "local") -> bool:
    """Run the demo; says whether every check held. ``repo``: the user's own, a path or an https address."""
    console.print("[bold]Sandferry demo[/bold]: an embedded broker, a GitHub double, one worker with one slot")
    if provider != "local":
        console.print(f"Sandboxes: the {provider} driver and its real SDK, against a double of {provider} on loopback")
    with stage(provider) as scene:
        result, run_id, checks = _clone(scene, repo)
        if "commit" in result:
            checks += copy_back_act.play(scene, result, run_id)
        return report(checks + tools_act.play(scene))


def _clone(scene: Stage, repo: str | None) -> tuple[dict[str, object], str, list[Check]]:
    if repo is not None and "://" in repo:
        return clone_act.public(scene, repo)
    repositories.make(scene.github.root, repositories.PUBLIC)
    if repo is None:
        repositories.make(scene.github.root, repositories.PRIVATE)
    else:
        repositories.mirror(scene.github.root, repositories.PRIVATE, Path(repo))
    return clone_act.private(scene)
