"""An exception of any origin -> the facts of a failure."""

from collections.abc import Iterator
from dataclasses import replace

from celery.exceptions import SoftTimeLimitExceeded

from worker.failures.model import Cancelled, Category, EndedBy, Failure, InvalidRequest, OperationFailed
from worker.retrying.attempt import Attempt
from worker.stores.redis import StoreError, is_outage


def chain(exc: BaseException) -> Iterator[BaseException]:
    """Yield an exception and what it was raised from or while handling, each once."""
    seen: set[int] = set()
    queue: list[BaseException | None] = [exc]
    while queue:
        link = queue.pop(0)
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        queue += [link.__cause__, link.__context__]


def facts(exc: BaseException, attempt: Attempt) -> Failure:
    """Read an exception. A soft time limit or a cancel anywhere in its chain outranks all else: SDKs wrap both."""
    base = Failure(operation=attempt.operation, stage=attempt.stage)
    links = list(chain(exc))
    if any(isinstance(link, SoftTimeLimitExceeded) for link in links):
        return replace(base, ended_by=EndedBy.DEADLINE, reason="soft_time_limit")
    if attempt.deadline.cancel.is_set() or any(isinstance(link, Cancelled) for link in links):
        return replace(base, category=Category.CANCELLED, reason="cancelled", ended_by=EndedBy.CANCELLED)
    match exc:
        case OperationFailed():
            return exc.failure
        case InvalidRequest():
            return replace(base, category=Category.INVALID_REQUEST, reason=exc.reason, field_name=exc.field_name)
        case StoreError() if is_outage(exc):
            return replace(base, category=Category.TRANSIENT_SERVER, reason="store_unreachable")
        case _ if attempt.provider is not None:
            return attempt.provider.facts(exc, operation=attempt.operation, stage=attempt.stage)
    return replace(base, exception=f"{type(exc).__module__}.{type(exc).__qualname__}", text=str(exc))
