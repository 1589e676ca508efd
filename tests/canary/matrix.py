"""The matrix: every source against every sink, and what is in which cell."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.canary.sinks import SINKS
from tests.canary.sources import SOURCES, Source
from tests.canary.stage import stage
from worker.secrets.literals import forms

CLEAN, DESIGN, LEAK = ".", "d", "X"


@dataclass(frozen=True)
class Matrix:
    """``cells[source][sink]``: nothing found, found where it belongs, or a leak."""

    cells: Mapping[str, Mapping[str, str]]

    @property
    def leaks(self) -> list[tuple[str, str]]:
        return [(row, sink) for row, cells in self.cells.items() for sink, cell in cells.items() if cell == LEAK]

    def blind(self) -> set[str]:
        """Sinks in which nothing at all was found."""
        return {sink for sink in SINKS if all(cells[sink] == CLEAN for cells in self.cells.values())}

    def lines(self) -> list[str]:
        """As a person reads it."""
        sinks = list(SINKS)
        width = max(map(len, self.cells))
        head = [f"{'':{width}}  {' '.join(f'{number:2}' for number in range(1, len(sinks) + 1))}"]
        rows = [
            f"{row:{width}}  {' '.join(f'{cells[sink]:>2}' for sink in sinks)}" for row, cells in self.cells.items()
        ]
        legend = [f"  {number:2}  {sink}" for number, sink in enumerate(sinks, 1)]
        reasons = sorted({f"  d   {sink}: {why}" for source in SOURCES for sink, why in source.design.items()})
        return [*head, *rows, "", *legend, "", "  .   not found", *reasons, f"  {LEAK}   leak"]


def play(*, fences: str = "up") -> Matrix:
    """Plant every secret in a running service, let everything end, and look everywhere; for the proof, some."""
    sources = SOURCES if fences == "up" else [source for source in SOURCES if source.proves]
    planted = {source.name: source.make() for source in sources}
    with (
        TemporaryDirectory(prefix="canary-", ignore_cleanup_errors=True) as home,
        stage(Path(home), fences=fences) as on,
    ):
        for source in sources:
            source.plant(on, planted[source.name])
        on.settle()
        found = {sink: _found(planted, b"\n".join(read(on))) for sink, read in SINKS.items()}
    return Matrix({s.name: {sink: _cell(s, sink, s.name in found[sink]) for sink in SINKS} for s in sources})


def _found(planted: Mapping[str, str], content: bytes) -> set[str]:
    """Sources whose secret is there: plain, base64, URL-encoded, JSON, hexadecimal."""
    return {name for name, secret in planted.items() if any(form.encode() in content for form in forms(secret))}


def _cell(source: Source, sink: str, found: bool) -> str:
    if not found:
        return CLEAN
    return DESIGN if sink in source.design else LEAK
