"""Every cell of the gate, against the table in docs/dispatch.md."""

import itertools
import re
from pathlib import Path

import pytest

from tasks.dispatch.gate import Action, Ledger, Phase, Place, Position, Receipt, decide
from worker.tools.manifest import Effect

DOCS = Path(__file__).resolve().parents[3] / "docs" / "dispatch.md"
COLUMNS = (Effect, Phase, Receipt, Ledger, Place)
CELLS = list(itertools.product(*COLUMNS))


def rows() -> list[list[str]]:
    lines = DOCS.read_text().splitlines()
    start = lines.index("| effect | phase | receipt | ledger | sandbox | action |") + 2
    table = itertools.takewhile(lambda line: line.startswith("|"), lines[start:])
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def holds(row: list[str], cell: tuple[str, ...]) -> bool:
    return all(text == "any" or word in re.split(", ", text) for text, word in zip(row, cell, strict=False))


def position(cell: tuple) -> Position:
    effect, phase, receipt, ledger, place = cell
    return Position(effect=effect, phase=phase, receipt=receipt, ledger=ledger, place=place)


def test_the_table_is_complete_and_says_nothing_twice():
    assert len(CELLS) == 4 * 3 * 4 * 3 * 2
    assert [cell for cell in CELLS if sum(holds(row, cell) for row in rows()) != 1] == []


def test_the_table_uses_no_unknown_word():
    for row in rows():
        for text, column in zip(row, (*COLUMNS, Action), strict=True):
            assert text == "any" or set(text.split(", ")) <= {word.value for word in column}


@pytest.mark.parametrize("cell", CELLS, ids="-".join)
def test_the_gate_decides_as_the_table_says(cell):
    (expected,) = [row[-1] for row in rows() if holds(row, cell)]
    assert decide(position(cell)) == expected


@pytest.mark.parametrize("cell", CELLS, ids="-".join)
def test_what_may_have_been_sent_is_sent_again_for_a_read_only(cell):
    effect, phase, *_ = cell
    if phase is not Phase.NOT_SENT and effect is not Effect.READ:
        assert decide(position(cell)) not in {Action.SEND, Action.SEND_AGAIN}
    if effect is Effect.READ:
        assert decide(position(cell)) is not Action.UNKNOWN


@pytest.mark.parametrize("cell", CELLS, ids="-".join)
def test_mixed_and_undeclared_are_treated_as_writes(cell):
    effect, *rest = cell
    if effect is not Effect.READ:
        assert decide(position(cell)) is decide(position((Effect.WRITE, *rest)))
