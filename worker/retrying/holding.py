"""How a job takes hold of a sandbox and lets go of it."""

from dataclasses import replace

from worker.failures.model import Category, InvalidRequest, OperationFailed
from worker.retrying.attempt import Attempt
from worker.retrying.requests import After, SandboxRequest
from worker.retrying.services import Services
from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN, Provider, Sandbox
from worker.sandboxes.deadline import Deadline

LETTING_GO = 30.0
"""Seconds to leave a sandbox in order, also when the job's own time is over."""


def acquire(attempt: Attempt, services: Services, wanted: SandboxRequest, *, keep: float) -> Sandbox:
    """Connect to the sandbox of a request or make it, once, and keep it alive while the body runs.

    ``keep`` is the lease in seconds it is to have when the job lets go.
    """
    attempt.at("acquire")
    keep = min(keep, services.settings.keep_max)
    provider = attempt.provider = services.providers.get(wanted.provider)
    attempt.emit("sandbox.initializing", provider=provider.name)
    lease = attempt.deadline.remaining() + keep
    try:
        sandbox = _existing(attempt, provider, wanted) or _made(attempt, provider, wanted, lease)
        sandbox.keep_alive(lease, deadline=attempt.deadline)
    except Exception as exc:
        attempt.emit("sandbox.failed", provider=provider.name, exception=type(exc).__name__)
        raise
    services.sandboxes.hold(provider.name, sandbox.id, run_id=attempt.run_id, task_id=attempt.task_id, seconds=lease)
    attempt.hold(sandbox, lease)
    attempt.emit("sandbox.ready", provider=provider.name, sandbox_id=sandbox.id)
    return sandbox


def let_go(attempt: Attempt, services: Services, sandbox: Sandbox, after: After) -> None:
    """Do what the request says should become of its sandbox."""
    if after.release:
        release(attempt, services, sandbox)
        return
    seconds = min(after.keep or services.settings.keep_default, services.settings.keep_max)
    sandbox.keep_alive(seconds, deadline=Deadline.after(LETTING_GO))
    services.sandboxes.keep(sandbox.provider, sandbox.id, run_id=attempt.run_id, seconds=seconds)
    services.sandboxes.let_go(sandbox.provider, sandbox.id, run_id=attempt.run_id, task_id=attempt.task_id)


def release(attempt: Attempt, services: Services, sandbox: Sandbox) -> None:
    """End a sandbox; if that fails, the reaper does it later."""
    services.sandboxes.give_up(sandbox.provider, sandbox.id, run_id=attempt.run_id)
    sandbox.release(deadline=Deadline.after(LETTING_GO))
    services.sandboxes.forget(sandbox.provider, sandbox.id)
    attempt.emit("sandbox.released", provider=sandbox.provider, sandbox_id=sandbox.id)


def existing(attempt: Attempt, provider: Provider, sandbox_id: str) -> Sandbox | None:
    """Connect to a sandbox of this run, or ``None`` if it is gone. A foreign one raises InvalidRequest."""
    try:
        return provider.connect(sandbox_id, {LABEL_RUN: attempt.run_id}, deadline=Deadline.after(LETTING_GO))
    except OperationFailed as exc:
        if exc.failure.category is Category.SANDBOX_LOST:
            return None
        raise


def held(attempt: Attempt, services: Services, wanted: SandboxRequest) -> Sandbox | None:
    """Find the sandbox of a request, if there is one of ours: what a job that is over cleans up."""
    try:
        provider = services.providers.get(wanted.provider)
        if wanted.id is not None:
            return existing(attempt, provider, wanted.id)
        found = provider.find(_labels(attempt), deadline=Deadline.after(LETTING_GO))
    except InvalidRequest:
        return None
    return found[0] if found else None


def _existing(attempt: Attempt, provider: Provider, wanted: SandboxRequest) -> Sandbox | None:
    if wanted.id is not None:
        return provider.connect(wanted.id, {LABEL_RUN: attempt.run_id}, deadline=attempt.deadline)
    if attempt.fence == 1 and attempt.number == 1:
        return None
    # A body before this one may have made it.
    found = provider.find(_labels(attempt), deadline=attempt.deadline)
    return found[0] if found else None


def _made(attempt: Attempt, provider: Provider, wanted: SandboxRequest, lease: float) -> Sandbox:
    if wanted.spec is None:
        raise InvalidRequest("sandbox", "missing")
    spec = wanted.spec.spec()
    return provider.create(replace(spec, ttl=max(spec.ttl, lease)), _labels(attempt), deadline=attempt.deadline)


def _labels(attempt: Attempt) -> dict[str, str]:
    return {LABEL_RUN: attempt.run_id, LABEL_REQUEST: attempt.task_id}
