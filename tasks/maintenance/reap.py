"""End the sandboxes whose time has come."""

from collections import Counter

from worker.failures.model import Category, InvalidRequest, OperationFailed
from worker.observability.logs import logger
from worker.retrying.services import Services
from worker.sandboxes.base import LABEL_RUN
from worker.sandboxes.deadline import Deadline
from worker.stores.sandboxes import Kept

log = logger(__name__)

TIMEOUT = 30.0
"""Seconds to end one sandbox."""


def reap(services: Services) -> Counter[str]:
    """End released and expired sandboxes; returns how many were ``reaped``, ``gone`` already or ``failed``."""
    return Counter(_one(services, kept) for kept in services.sandboxes.due())


def _one(services: Services, kept: Kept) -> str:
    deadline = Deadline.after(TIMEOUT)
    try:
        provider = services.providers.get(kept.provider)
        sandbox = provider.connect(kept.sandbox_id, {LABEL_RUN: kept.run_id}, deadline=deadline)
        sandbox.release(deadline=deadline)
    except Exception as exc:  # noqa: BLE001 - one sandbox that cannot be ended must not keep the others
        if not _is_gone(exc):
            log.warning("sandbox not reaped", provider=kept.provider, exception=type(exc).__name__)
            return "failed"
        services.sandboxes.forget(kept.provider, kept.sandbox_id)
        return "gone"
    services.sandboxes.forget(kept.provider, kept.sandbox_id)
    services.events.append(
        kept.run_id, "sandbox.released", {"provider": kept.provider, "sandbox_id": kept.sandbox_id, "reason": "reaped"}
    )
    return "reaped"


def _is_gone(exc: Exception) -> bool:
    match exc:
        case InvalidRequest(reason="foreign_sandbox"):
            return True
        case OperationFailed(failure=failure):
            return failure.category is Category.SANDBOX_LOST
    return False
