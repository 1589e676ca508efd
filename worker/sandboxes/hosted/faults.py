"""The failures that hosted drivers know by themselves."""

from worker.failures.model import Category, Failure, OperationFailed


def failure(
    provider: str, stage: str, category: Category | None, reason: str | None, text: str = ""
) -> OperationFailed:
    """A failure whose reason is known here."""
    return OperationFailed(
        Failure(operation="sandbox", stage=stage, provider=provider, category=category, reason=reason, text=text)
    )


def lost(provider: str, stage: str) -> OperationFailed:
    """The failure of a sandbox that is gone or dead."""
    return failure(provider, stage, Category.SANDBOX_LOST, "sandbox_lost")
