"""Two hundred seeded fault schedules for a tool that writes: never more than one run, unknown only when it must be."""

import random
import time
from pathlib import Path

import pytest

from tests.rig.faulty import Bench, Faults, together
from tests.rig.tools import COUNTED, request, runs, tool
from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN, Spec
from worker.sandboxes.deadline import Deadline

PASSING = ["refused", "reset_after", "reset_during", "killed_before", "killed_after", "killed_during"]
"""Faults that leave the sandbox and its processes alone."""
SETTING_UP = 4
"""Calls before a first send: stage, write, unpack, stage."""
FINAL = ["tool_lost", "gone", "forget"]
"""Faults that take something away for good: the processes, the sandbox, the record store."""


def plan(chance: random.Random) -> list[str]:
    """Up to three faults among the calls of a sandbox; half of the plans leave the first four alone, up to the send."""
    faults = [chance.choice([*PASSING, *PASSING, *FINAL]) for _ in range(chance.randint(1, 3))]
    calm = [""] * chance.randint(0, 4)
    mixed = faults + calm
    chance.shuffle(mixed)
    return [""] * (SETTING_UP * chance.randint(0, 1)) + mixed


def traces(home: Path) -> list[Path]:
    """The claims of calls in all sandboxes that are there."""
    return [claim for claim in home.glob("sandboxes/local-*/scratch/dispatch/*/claim.*") if not is_void(claim)]


def is_void(claim: Path) -> bool:
    return str(claim.readlink()) == "void"


def receipts(home: Path) -> list[Path]:
    return list(home.glob("sandboxes/local-*/scratch/dispatch/*/*/receipt"))


@pytest.mark.parametrize("seed", range(200))
def test_a_write_runs_at_most_once(seed: int, tmp_path: Path, valkey_url: str):
    chance = random.Random(seed)
    bench = Bench(tmp_path, valkey_url, Faults(plan(chance), lambda most: chance.uniform(0, most)))
    count = tmp_path / "count"
    package = tool(COUNTED + chance.choice(["", "sleep 0.1; "]) + "echo done", output="text")
    bench.services.tools("default").put(package)
    wanted = request(str(package.descriptor.reference), env={"COUNT": str(count)})
    if chance.random() < 0.5:
        labels = {LABEL_RUN: wanted["run_id"], LABEL_REQUEST: "earlier"}
        made = bench.local.create(Spec(), labels, deadline=Deadline.after(10))
        wanted["sandbox"] = {"provider": "local", "id": made.id}
    forgets = chance.random() < 0.25

    answers = [bench.deliver(wanted, "task-1")]
    if forgets:
        bench.services.client.flushall()
    if chance.random() < 0.5:
        answers.append(bench.deliver(wanted, chance.choice(["task-1", "task-2"])))
    else:
        answers += together(lambda: bench.deliver(wanted, "task-2"), lambda: bench.deliver(wanted, "task-3"))

    story = f"{bench.faults.happened} forgets={forgets} {answers}"
    assert runs(count) <= 1, story
    for state, answer in answers:
        if state == "SUCCESS":
            assert runs(count) == 1, story
            assert (answer["outcome"], answer["output"]) == ("succeeded", "done\n"), story
        elif "managed_tool_outcome_unknown" in answer:
            assert "stage=dispatch effect=write" in answer
            gone = "gone" in bench.faults.happened
            dead = bool(traces(tmp_path)) and not receipts(tmp_path)
            elsewhere = (forgets or "forget" in bench.faults.happened) and "spec" in wanted["sandbox"]
            assert gone or dead or elsewhere, story
        else:
            assert answer.startswith("managed_tool_dispatch_failed: "), story
    assert time.time() >= wanted["issued_at"]
