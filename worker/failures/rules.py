"""The engine: a rule is a row of conditions, a table is judged from the top, the first row that holds decides."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from worker.failures.model import Category, Credential, EndedBy, Failure
from worker.failures.text import normalise, status_in
from worker.failures.vocabulary import short_name


def shape(*alternatives: str) -> re.Pattern[str]:
    """One pattern of several wordings of the same message, for normalised (lower-case) text."""
    return re.compile("|".join(alternatives), re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A row. Every condition that is set must hold; one that is left empty does not matter.

    ``text`` is searched in the normalised text; ``statuses`` looks at the status written in the text, else at
    ``http_status``; ``exceptions`` are short class names. ``hides_replication`` marks the shapes a server also
    answers with while it does not know a fresh token yet. ``example`` is a failure, or a text, that this row and
    no row above it judges; ``why`` says where the row comes from.
    """

    name: str
    category: Category
    reason: str
    why: str
    example: "str | Failure"
    text: re.Pattern[str] | None = None
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
    hides_replication: bool = False

    def facts(self) -> Failure:
        """The example as a failure."""
        if isinstance(self.example, Failure):
            return self.example
        return Failure(operation="clone", stage="fetch", text=self.example)

    def holds(self, evidence: "Evidence") -> bool:
        """Whether every condition holds."""
        failure = evidence.failure
        return (
            _allows(self.ended_by, failure.ended_by)
            and _allows(self.signals, failure.signal)
            and _allows(self.exit_codes, failure.exit_code)
            and _allows(self.errnos, failure.errno)
            and _allows(self.exceptions, evidence.exception)
            and _allows(self.stages, failure.stage)
            and _allows(self.operations, failure.operation)
            and _allows(self.providers, failure.provider)
            and _allows(self.programs, failure.program)
            and _allows(self.credentials, failure.credential)
            and (not self.statuses or evidence.status in self.statuses)
            and (self.text is None or self.text.search(evidence.text) is not None)
        )


class Evidence:
    """A failure with what is read out of it once, and only when a rule asks."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        self.exception = short_name(failure.exception or "") or None

    @cached_property
    def text(self) -> str:
        """The normalised text."""
        return normalise(self.failure.text)

    @cached_property
    def status(self) -> int | None:
        """The HTTP status: the one in the message outranks that of the call which reported the message."""
        return status_in(self.text) or self.failure.http_status


def first(rules: Iterable[Rule], failure: Failure) -> Rule | None:
    """The first row that holds."""
    evidence = Evidence(failure)
    return next((rule for rule in rules if rule.holds(evidence)), None)


def _allows(wanted: tuple[object, ...], fact: object) -> bool:
    return not wanted or fact in wanted
