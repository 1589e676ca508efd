"""How a job takes hold of a sandbox and lets go of it."""

from dataclasses import replace
from functools import partial

from worker.failures.model import Category, Failure, InvalidRequest, OperationFailed
from worker.observability.logs import logger
from worker.retrying.attempt import Attempt, Postponed
from worker.retrying.requests import After, SandboxRequest
from worker.retrying.services import Services
from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN, Provider, Sandbox, Spec
from worker.sandboxes.deadline import Deadline
from worker.stores.sandboxes import Noted

log = logger(__name__)

LETTING_GO = 30.0
"""Seconds to leave a sandbox in order, also when the job's own time is over."""
ENDING = 15.0
"""Of these, seconds to end what an earlier body left running; a sandbox that is hostile uses them up."""


def checked_keep(seconds: float, services: Services, field: str) -> float:
    """The time a request wants a sandbox kept, if settings allow that much (``keep_max``).

    :raises InvalidRequest: they do not; ``field`` is ``too_long``.
    """
    if seconds > services.settings.keep_max:
        raise InvalidRequest(field, "too_long")
    return seconds


def acquire(attempt: Attempt, services: Services, wanted: SandboxRequest, *, keep: float) -> Sandbox:
    """Connect to the sandbox of a request or make it, once, and keep it alive while the body runs.

    ``keep`` is the lease in seconds it is to have when the job lets go. Commands that an earlier body of this task
    left in it are ended first.
    """
    attempt.at("acquire")
    checked_keep(keep, services, "after_keep")
    if wanted.spec is not None and wanted.spec.ttl is not None:
        checked_keep(wanted.spec.ttl, services, "sandbox_spec_ttl")
    provider = attempt.provider = services.providers.get(wanted.provider)
    attempt.secrets += services.account_keys(provider.name)
    _take_slot(attempt, services, provider.name)
    if attempt.carry:
        services.attempts.leave(attempt.task_id, fence=attempt.fence, carry=attempt.carry)
    attempt.emit("sandbox.initializing", provider=provider.name)
    lease = attempt.deadline.remaining() + keep
    try:
        sandbox = _lent(attempt, services, provider, wanted, lease) or _ours(attempt, services, provider, wanted, lease)
        sandbox.keep_alive(lease, deadline=attempt.deadline)
        sandbox.mark(attempt.task_id)
        if attempt.fence > 1:
            sandbox.end_commands(attempt.task_id, deadline=attempt.deadline)
    except Exception as exc:
        attempt.emit("sandbox.failed", provider=provider.name, exception=type(exc).__name__)
        raise
    attempt.hold(sandbox, lease)
    attempt.emit("sandbox.ready", provider=provider.name, sandbox_id=sandbox.id)
    return sandbox


def _take_slot(attempt: Attempt, services: Services, provider: str) -> None:
    """Take one of the provider's slots until the body ends.

    :raises Postponed: all are taken.
    """
    slots = services.slots
    if not slots.limited(provider):
        return
    if not slots.take(provider, attempt.task_id):
        raise Postponed("provider_full")
    attempt.resources.callback(slots.free, provider, attempt.task_id)
    attempt.sign(partial(slots.take, provider, attempt.task_id))


def let_go(attempt: Attempt, services: Services, sandbox: Sandbox, after: After) -> None:
    """Do what the request says should become of its sandbox.

    :raises OperationFailed: it was to be kept, and somebody has it ended (``sandbox_lost``).
    """
    if after.release:
        release(attempt, services, sandbox)
        return
    seconds = after.keep or services.settings.keep_default
    place = (sandbox.provider, sandbox.id)
    kept = services.sandboxes.keep(*place, run_id=attempt.run_id, seconds=seconds)
    try:
        _leave(attempt, sandbox, seconds)
    finally:
        services.sandboxes.let_go(*place, run_id=attempt.run_id, task_id=attempt.task_id)
    _require_held(kept, sandbox.provider, "release")


def _leave(attempt: Attempt, sandbox: Sandbox, seconds: float) -> None:
    """See that nothing of this task runs in a sandbox that lives on, and that it does."""
    deadline = Deadline.after(LETTING_GO)
    if attempt.ended:  # it failed, perhaps before it could end what an earlier body left
        try:
            sandbox.end_commands(attempt.task_id, deadline=deadline.capped(ENDING))
        except Exception as exc:  # noqa: BLE001 - the sandbox must be kept all the same: work is in it
            log.warning("commands not ended", provider=sandbox.provider, exception=type(exc).__name__)
    sandbox.keep_alive(seconds, deadline=deadline)


def release(attempt: Attempt, services: Services, sandbox: Sandbox) -> None:
    """End a sandbox; if that fails, the reaper does it later."""
    end(attempt, services, services.providers.get(sandbox.provider), sandbox.id)


def end(attempt: Attempt, services: Services, provider: Provider, sandbox_id: str) -> bool:
    """End a sandbox of this run by its id, whatever runs in it; ``False``: it was gone already.

    :raises InvalidRequest: it is not this run's (``foreign_sandbox``).
    """
    if services.sandboxes.give_up(provider.name, sandbox_id, run_id=attempt.run_id) is Noted.FOREIGN:
        raise InvalidRequest("sandbox_id", "foreign_sandbox")
    try:
        ended = provider.end(sandbox_id, {LABEL_RUN: attempt.run_id}, deadline=Deadline.after(LETTING_GO))
    except InvalidRequest:
        services.sandboxes.forget(provider.name, sandbox_id)  # never ours
        raise
    services.sandboxes.forget(provider.name, sandbox_id)
    if ended:
        attempt.emit("sandbox.released", provider=provider.name, sandbox_id=sandbox_id)
    return ended


def held(attempt: Attempt, services: Services, wanted: SandboxRequest) -> Sandbox | None:
    """Find what this task made or was lent: what a job cleans up. Runs nothing inside.

    A lent sandbox that a failed job never took hold of is none of its business: the request may not have been served.
    """
    lent = wanted.id is not None
    if (
        lent
        and attempt.ended
        and not services.sandboxes.holds(wanted.provider, wanted.id or "", task_id=attempt.task_id)
    ):
        return None
    try:
        provider = services.providers.get(wanted.provider)
        labels = {LABEL_RUN: attempt.run_id} if lent else _labels(attempt)
        found = provider.find(labels, deadline=Deadline.after(LETTING_GO))
    except InvalidRequest:
        return None
    return next((sandbox for sandbox in found if not lent or sandbox.id == wanted.id), None)


def _lent(
    attempt: Attempt, services: Services, provider: Provider, wanted: SandboxRequest, lease: float
) -> Sandbox | None:
    """The sandbox that a request names: held first, so that the reaper leaves it alone, then connected to."""
    if wanted.id is None:
        return None
    place = (provider.name, wanted.id)
    noted = services.sandboxes.hold(*place, run_id=attempt.run_id, task_id=attempt.task_id, seconds=lease)
    _require_held(noted, provider.name, "acquire")
    try:
        return provider.connect(wanted.id, {LABEL_RUN: attempt.run_id}, deadline=attempt.deadline)
    except InvalidRequest:
        services.sandboxes.let_go(*place, run_id=attempt.run_id, task_id=attempt.task_id)
        raise


def _ours(attempt: Attempt, services: Services, provider: Provider, wanted: SandboxRequest, lease: float) -> Sandbox:
    """The sandbox that an earlier body made, or a new one."""
    if wanted.spec is None:
        raise InvalidRequest("sandbox", "missing")
    sandbox = _made_before(attempt, provider) or _made(attempt, provider, wanted.spec.spec(), lease)
    place = (provider.name, sandbox.id)
    noted = services.sandboxes.hold(*place, run_id=attempt.run_id, task_id=attempt.task_id, seconds=lease)
    _require_held(noted, provider.name, "acquire")
    if wanted.spec.ttl is not None:
        services.sandboxes.keep(*place, run_id=attempt.run_id, seconds=wanted.spec.ttl)
    return sandbox


def _made_before(attempt: Attempt, provider: Provider) -> Sandbox | None:
    if attempt.fence == 1 and attempt.number == 1:
        return None
    found = provider.find(_labels(attempt), deadline=attempt.deadline)
    return found[0] if found else None


def _made(attempt: Attempt, provider: Provider, spec: Spec, lease: float) -> Sandbox:
    attempt.creating = True
    try:
        made = provider.create(replace(spec, ttl=max(spec.ttl, lease)), _labels(attempt), deadline=attempt.deadline)
    except InvalidRequest:
        attempt.creating = False  # refused before it was sent
        raise
    attempt.creating = False
    return made


def _require_held(noted: Noted, provider: str, stage: str) -> None:
    match noted:
        case Noted.FOREIGN:
            raise InvalidRequest("sandbox_id", "foreign_sandbox")
        case Noted.DOOMED:
            category = Category.SANDBOX_LOST
            raise OperationFailed(
                Failure(operation="sandbox", stage=stage, provider=provider, category=category, reason="sandbox_lost")
            )


def _labels(attempt: Attempt) -> dict[str, str]:
    return {LABEL_RUN: attempt.run_id, LABEL_REQUEST: attempt.task_id}
