"""What any exception says about itself; drivers add what their SDK knows."""

import errno

from worker.failures.model import Failure, OperationFailed


def errno_name(exc: BaseException) -> str | None:
    """The name of the first ``errno`` along the chain of an exception (``ENOSPC``), if there is one."""
    seen: set[int] = set()
    current: BaseException | None = exc
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        if isinstance(current, OSError) and (name := errno.errorcode.get(current.errno or 0)):
            return name
        current = current.__cause__ or current.__context__
    return None


def qualified_name(exc: BaseException) -> str:
    """``module.Class``; builtins keep their bare name."""
    kind = type(exc)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def plain_facts(
    exc: BaseException, *, operation: str, stage: str, provider: str, http_status: int | None = None
) -> Failure:
    """The facts of an exception. One that carries its facts already (:class:`OperationFailed`) keeps them."""
    if isinstance(exc, OperationFailed):
        return exc.failure
    return Failure(
        operation=operation,
        stage=stage,
        provider=provider,
        exception=qualified_name(exc),
        http_status=http_status,
        errno=errno_name(exc),
        text=str(exc),
    )
