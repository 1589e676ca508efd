"""End the sandboxes whose time has come."""

from collections import Counter

from worker.failures.model import InvalidRequest
from worker.observability.logs import logger
from worker.retrying.services import Services
from worker.sandboxes.base import LABEL_RUN
from worker.sandboxes.deadline import Deadline
from worker.stores.sandboxes import Kept

log = logger(__name__)

TIMEOUT = 30.0
"""Seconds to end one sandbox."""
TOGETHER = 60.0
"""Seconds for all of them: a provider that hangs must not take the slot of the sweep for longer."""


def reap(services: Services, deadline: Deadline) -> Counter[str]:
    """End released and expired sandboxes; returns how many were ``reaped``, ``gone`` already or ``failed``.

    One reaper at a time: several would only wait for the same providers. What failed is put off.
    """
    done: Counter[str] = Counter()
    deadline = deadline.capped(TOGETHER)
    with services.sandboxes.reaping(deadline.remaining()) as ours:
        while ours and deadline.ended_by() is None and (kept := services.sandboxes.claim()):
            done[_one(services, kept, deadline.capped(TIMEOUT))] += 1
    return done


def _one(services: Services, kept: Kept, deadline: Deadline) -> str:
    try:
        provider = services.providers.get(kept.provider)
        ended = provider.end(kept.sandbox_id, {LABEL_RUN: kept.run_id}, deadline=deadline)
    except InvalidRequest as exc:
        if exc.field_name != "sandbox_id":
            return _failed(kept, exc)
        ended = False  # a request named what is no sandbox of its run
    except Exception as exc:  # noqa: BLE001 - one sandbox that cannot be ended must not keep the others
        return _failed(kept, exc)
    services.sandboxes.forget(kept.provider, kept.sandbox_id)
    if not ended:
        return "gone"
    services.events.append(
        kept.run_id, "sandbox.released", {"provider": kept.provider, "sandbox_id": kept.sandbox_id, "reason": "reaped"}
    )
    return "reaped"


def _failed(kept: Kept, exc: Exception) -> str:
    log.warning("sandbox not reaped", provider=kept.provider, exception=type(exc).__name__)
    return "failed"
