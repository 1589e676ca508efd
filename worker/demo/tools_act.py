"""The third act: tools whose replies are lost. A read is sent again, a write is found again, or said to be unknown."""

import os
import signal
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from worker.demo.show import Check, console, outcome
from worker.demo.stage import Stage
from worker.demo.watch import watch
from worker.observability.timeline import line
from worker.sandboxes.base import LABEL_RUN, Sandbox
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.local.groups import kill_by_home
from worker.tools.package import File, pack

_SCRIPT = b'#!/bin/sh\necho run >>"$COUNT"\nsleep 1\necho "{\\"said\\": \\"hello\\"}"\n'
"""A tool that counts its own runs, outside the sandbox."""
_LIMIT = 65_536
_TIMEOUT = 30.0
"""Seconds for a tool to start; it takes well under one."""

Fault = Callable[[Stage, Sandbox], None]


def play(scene: Stage) -> list[Check]:
    """Three calls, each with a fault in the middle of its tool."""
    console.print("\n[bold]Managed tools[/bold]: each loses its reply while it runs, and counts its own runs")
    read, reads = _call(scene, "read", "a read, whose processes die with the reply", _lose_processes)
    write, writes = _call(scene, "write", "a write, whose reply alone is lost", _lose_reply)
    gone, lost = _call(scene, "write", "a write, whose sandbox is gone", _lose_sandbox)
    unknown = "managed_tool_outcome_unknown: stage=dispatch effect=write"
    return [
        Check(f"the read was sent again: runs {reads}", read.get("outcome") == "succeeded" and reads == 2),
        Check(f"the write's receipt was adopted: runs {writes}", write.get("receipt") == "adopted" and writes == 1),
        Check(f"the lost write is unknown, not repeated: runs {lost}", _failed(gone, unknown) and lost == 1),
    ]


def _call(scene: Stage, effect: str, what: str, fault: Fault) -> tuple[dict[str, Any], int]:
    """Call a tool, break something while it runs; its answer, and how often it ran."""
    console.print(f"\n  {what}:")
    run_id = f"demo-tool-{uuid.uuid4().hex[:8]}"
    count = scene.home / f"{run_id}.count"
    request = {
        "schema": 1,
        "run_id": run_id,
        "sandbox": {"provider": "local", "spec": {}},
        "tool": _pushed(scene, effect),
        "dispatch_id": "call-1",
        "issued_at": time.time(),
        "env": {"COUNT": str(count)},
        "after": {"keep": 600},
    }
    sent = scene.app.send_task("tool.dispatch", kwargs={"request": request})
    _until(count.exists)
    (sandbox,) = scene.services.providers.get("local").find({LABEL_RUN: run_id}, deadline=Deadline.after(10))
    fault(scene, sandbox)
    watch(console, sent, run_id, scene.services.events)
    answer = outcome(sent)
    runs = len(count.read_text().splitlines())
    events = scene.services.events.read(run_id)
    console.print(line(events[-1], events[0].time), markup=False)
    said = answer.get("failed") or f"{answer['outcome']}, receipt {answer['receipt']}, output {answer['output']}"
    console.print(f"  -> {said}; side effects: {runs}", markup=False)
    return answer, runs


def _pushed(scene: Stage, effect: str) -> str:
    manifest = {
        "schema": 1,
        "name": f"demo-{effect}",
        "version": "1",
        "entrypoint": ["./run.sh"],
        "input_schema": {"type": "object"},
        "timeout": 20,
        "env": ["COUNT"],
        "effect": effect,
    }
    package = pack(manifest, {"run.sh": File(_SCRIPT, executable=True)}, limit=_LIMIT)
    scene.services.tools("default").put(package)
    return str(package.descriptor.reference)


def _lose_processes(scene: Stage, sandbox: Sandbox) -> None:  # noqa: ARG001 - as the other faults
    """All that runs in the sandbox dies, as when its machine is restarted."""
    kill_by_home(str(Path(sandbox.layout.scratch).with_name("home")))


def _lose_reply(scene: Stage, sandbox: Sandbox) -> None:  # noqa: ARG001 - as the other faults
    """Only what carries the reply dies; the tool goes on."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            argv = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if argv[3:5] == [b"sandferry-launcher", b"run"] and argv[6].startswith(sandbox.layout.scratch.encode()):
            os.kill(int(path.parent.name), signal.SIGKILL)


def _lose_sandbox(scene: Stage, sandbox: Sandbox) -> None:  # noqa: ARG001 - as the other faults
    """The provider takes it away."""
    sandbox.release(deadline=Deadline.after(10))


def _failed(answer: dict[str, Any], start: str) -> bool:
    return str(answer.get("failed", "")).startswith(start)


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _TIMEOUT
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("the tool did not start in time")
        time.sleep(0.02)
