"""A failure's cause: its facts in words that may leave the worker."""

from worker.failures.cause import Cause
from worker.failures.classify import Match
from worker.failures.model import Failure
from worker.failures.vocabulary import short_name


def describe(code: str, failure: Failure, match: Match, nested: Cause | None = None) -> Cause:
    """The cause of a judged failure. Its text is not looked at; an unknown word becomes ``other``."""
    return Cause.of(
        code,
        nested,
        operation=failure.operation,
        stage=failure.stage,
        field=None if failure.field_name is None else failure.field_name.replace(".", "_"),
        category=match.category,
        exit=failure.exit_code,
        http=failure.http_status,
        signal=failure.signal,
        errno=failure.errno,
        ended_by=failure.ended_by,
        program=failure.program,
        exception=short_name(failure.exception),
        provider=None if failure.provider == "none" else failure.provider,
        reason=match.reason,
    )
