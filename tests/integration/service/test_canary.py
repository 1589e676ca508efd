"""Secrets planted in every source are in no sink but where they belong; and the suite is not blind."""

import pytest

from tests.canary.matrix import play
from tests.canary.sinks import SINKS
from tests.canary.sources import SOURCES

pytestmark = pytest.mark.timeout(900)  # every job on every provider, with every secret


def test_nothing_leaks():
    matrix = play()
    assert matrix.leaks == []
    assert len(matrix.cells) == len(SOURCES)


def test_what_leaks_is_found():
    matrix = play(fences="down")
    assert matrix.blind() == set()
    assert {sink for _, sink in matrix.leaks} >= set(SINKS) - {
        "records as written", "redis at the end", "diagnostics", "argv", ".git/config", "sandbox env",
    }  # fmt: skip


def test_every_exception_names_a_sink():
    assert {sink for source in SOURCES for sink in source.design} <= set(SINKS)
    assert len({source.name for source in SOURCES}) == len(SOURCES)
