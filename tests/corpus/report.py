"""The tables of `make corpus`."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tests.corpus.baselines import BASELINES
from tests.corpus.entries import ENTRIES, Entry
from worker.failures.model import Category

FINAL = frozenset({Category.AUTH_DENIED, Category.POLICY_DENIED, Category.NOT_FOUND, Category.INVALID_REQUEST})
"""Where a retry is never right."""

DECIDERS: dict[str, Callable[[Entry], bool]] = {
    "sandferry": lambda entry: entry.judged.retry,
    **{name: lambda entry, decide=decide: decide(entry.failure) for name, decide in BASELINES.items()},
}


@dataclass(frozen=True)
class Score:
    """Of some entries: how many, how many retries right, repeated in vain, and not repeated though it helps."""

    entries: int
    right: int
    false_retries: int
    false_final: int
    missed: int

    @property
    def accuracy(self) -> float:
        """Share of right decisions; 1 of none."""
        return self.right / self.entries if self.entries else 1.0


def score(entries: Iterable[Entry], decide: Callable[[Entry], bool]) -> Score:
    """Compare decisions with labels."""
    pairs = [(entry, decide(entry)) for entry in entries]
    wrong = [entry for entry, retry in pairs if retry and not entry.retry]
    return Score(
        entries=len(pairs),
        right=sum(retry == entry.retry for entry, retry in pairs),
        false_retries=len(wrong),
        false_final=sum(entry.expected in FINAL for entry in wrong),
        missed=sum(entry.retry and not retry for entry, retry in pairs),
    )


def firm(entries: Iterable[Entry] = ENTRIES) -> list[Entry]:
    """Those that are no matter of policy."""
    return [entry for entry in entries if not entry.arguable]


def categories_right(entries: Iterable[Entry]) -> int:
    """How many were given their category."""
    return sum(entry.judged.match.category is entry.expected for entry in entries)


def lines() -> Iterator[str]:
    """Everything that is printed."""
    yield from _by_category()
    yield ""
    yield from _totals("firm entries", firm())
    yield ""
    yield from _totals("arguable entries", [entry for entry in ENTRIES if entry.arguable])
    yield ""
    yield from _parts()
    yield ""
    yield from _misses()


def _by_category() -> Iterator[str]:
    yield f"{'firm entries':<24}{'n':>5}{'category':>10}" + "".join(f"{name:>12}" for name in DECIDERS)
    for category in Category:
        entries = [entry for entry in firm() if entry.expected is category]
        if not entries:
            continue
        right = categories_right(entries) / len(entries)
        rates = "".join(f"{score(entries, decide).accuracy:>12.3f}" for decide in DECIDERS.values())
        yield f"{category:<24}{len(entries):>5}{right:>10.3f}{rates}"


def _totals(title: str, entries: list[Entry]) -> Iterator[str]:
    yield f"{title:<24}{'n':>5}{'retry right':>13}{'false':>8}{'of final':>10}{'missed':>8}"
    for name, decide in DECIDERS.items():
        found = score(entries, decide)
        yield (
            f"{name:<24}{found.entries:>5}{found.accuracy:>13.3f}{found.false_retries:>8}"
            f"{found.false_final:>10}{found.missed:>8}"
        )


def _parts() -> Iterator[str]:
    """The collections apart, and what was held out."""
    parts = {file: [entry for entry in firm() if entry.file == file] for file in dict.fromkeys(e.file for e in ENTRIES)}
    parts["held out"] = [entry for entry in firm() if entry.held_out]
    yield f"{'firm entries of':<24}{'n':>5}{'category':>10}{'retry':>8}"
    for name, entries in parts.items():
        right = categories_right(entries) / len(entries)
        yield f"{name:<24}{len(entries):>5}{right:>10.3f}{score(entries, DECIDERS['sandferry']).accuracy:>8.3f}"


def _misses() -> Iterator[str]:
    """Entries whose label we do not share, so that a reader can disagree."""
    for entry in ENTRIES:
        known = entry.judged
        if (known.match.category, known.retry) != (entry.expected, entry.retry):
            kind = "arguable" if entry.arguable else "WRONG"
            yield (
                f"{kind:<10}{entry.id}  expected {entry.expected} {'retry' if entry.retry else 'final'}, "
                f"judged {known.match.category} {'retry' if known.retry else 'final'} by {known.match.rule}"
            )
