"""The corpus: public failure texts with what they mean.

`failures.jsonl` is what the project was given; `reports.jsonl` was collected and labelled before the rules saw it,
and every third entry of it was kept out of tuning (`held_out`). `arguable` entries are a matter of policy.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from worker.commands.explaining import failure_of
from worker.failures.explanation import Explanation, explain
from worker.failures.model import Category, Failure

HERE = Path(__file__).resolve().parent
FILES = ("failures.jsonl", "reports.jsonl", "reports2.jsonl", "reports3.jsonl")


@dataclass(frozen=True)
class Entry:
    """One failure, its label, and where it comes from."""

    id: str
    failure: Failure
    expected: Category
    retry: bool
    arguable: bool
    why: str
    source: str
    file: str

    @cached_property
    def judged(self) -> Explanation:
        """What the classifier says."""
        return explain(self.failure)

    @property
    def held_out(self) -> bool:
        """Whether no rule was written for it."""
        return self.file == "reports.jsonl" and int(self.id[1:]) % 3 == 0


def _entry(line: str, file: str) -> Entry:
    facts = json.loads(line)
    labels = {name: facts.pop(name) for name in ("id", "retry", "arguable", "why", "source")}
    return Entry(failure=failure_of(facts), expected=Category(facts["expected"]), file=file, **labels)


ENTRIES = tuple(_entry(line, file) for file in FILES for line in (HERE / file).read_text(encoding="utf-8").splitlines())
