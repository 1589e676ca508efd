"""The engine: a rule is a row of conditions, a table is judged from the top, the first row that holds decides."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from worker.failures.model import Category, Credential, EndedBy, Failure
from worker.failures.shapes import Shape
from worker.failures.status import status_in
from worker.failures.text import masked, plain, types_in
from worker.failures.vocabulary import short_name

_CONDITIONS = (
    ("ended_by", "ended_by"),
    ("signal", "signals"),
    ("exit_code", "exit_codes"),
    ("errno", "errnos"),
    ("stage", "stages"),
    ("operation", "operations"),
    ("provider", "providers"),
    ("program", "programs"),
    ("credential", "credentials"),
)
"""Fact of a failure -> the condition of a rule that lists its allowed values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A row. Every condition that is set must hold; one that is left empty does not matter.

    ``text`` is searched in the normalised text; ``statuses`` looks at the status written in the text, else at
    ``http_status``; ``exceptions`` are short class names of what was raised or, in a ``named`` row and when nothing
    is known to have been raised, of what the text names. ``hides_replication`` marks the shapes a server also
    answers with while it does not know a fresh token yet. ``example`` is a failure, or a text, that this row and
    no row above it judges; ``why`` says where the row comes from.
    """

    name: str
    category: Category
    reason: str
    why: str
    example: "str | Failure"
    text: Shape | None = None
    statuses: tuple[int, ...] = ()
    exit_codes: tuple[int, ...] = ()
    exceptions: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()
    errnos: tuple[str, ...] = ()
    ended_by: tuple[EndedBy, ...] = ()
    stages: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    credentials: tuple[Credential, ...] = ()
    named: bool = False
    hides_replication: bool = False
    wanted: tuple[tuple[str, tuple[object, ...]], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Keep the facts that matter: most rows look at one or two of ten."""
        given = ((name, getattr(self, condition)) for name, condition in _CONDITIONS)
        object.__setattr__(self, "wanted", tuple((name, allowed) for name, allowed in given if allowed))

    def facts(self) -> Failure:
        """The example as a failure."""
        if isinstance(self.example, Failure):
            return self.example
        return Failure(operation="clone", stage="fetch", text=self.example)

    def holds(self, evidence: "Evidence") -> bool:
        """Whether every condition holds."""
        for name, allowed in self.wanted:
            if getattr(evidence.failure, name) not in allowed:
                return False
        return (
            (not self.exceptions or self._concerns(evidence))
            and (not self.statuses or evidence.status in self.statuses)
            and (self.text is None or self.text.search(evidence.text))
        )

    def _concerns(self, evidence: "Evidence") -> bool:
        """Whether one of its exceptions was raised or, where that counts, is named."""
        if evidence.exception or not self.named:
            return evidence.exception in self.exceptions
        return not evidence.types.isdisjoint(self.exceptions)


class Evidence:
    """A failure with what is read out of it once, and only when a rule asks."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        self.exception = short_name(failure.exception or "") or None

    @cached_property
    def plain(self) -> str:
        """The text with its case and names."""
        return plain(self.failure.text)

    @cached_property
    def text(self) -> str:
        """The normalised text."""
        return masked(self.plain)

    @cached_property
    def types(self) -> frozenset[str]:
        """Classes that the text names."""
        return types_in(self.plain)

    @cached_property
    def status(self) -> int | None:
        """The HTTP status: the one in the message outranks that of the call which reported the message."""
        return status_in(self.text) or self.failure.http_status


def first(rules: Iterable[Rule], failure: Failure) -> Rule | None:
    """The first row that holds."""
    evidence = Evidence(failure)
    return next((rule for rule in rules if rule.holds(evidence)), None)
