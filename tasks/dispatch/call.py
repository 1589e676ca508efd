"""A call, made ready before any sandbox is: what runs, with what, and for how long."""

import hashlib
import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tasks.dispatch.request import DispatchRequest
from worker.failures.model import Category, Failure, InvalidRequest, OperationFailed
from worker.retrying.attempt import Attempt
from worker.retrying.requests import SandboxRequest
from worker.retrying.services import Services
from worker.secrets.sealed import Binding, unseal
from worker.secrets.subject import tool_subject
from worker.settings import Settings
from worker.stores.ledger import Call
from worker.tools.manifest import Effect, Manifest, check_arguments
from worker.tools.package import Descriptor, Reference
from worker.tools.store import PackageStore

INPUT_MAX = 8 * 1024 * 1024
"""Bytes of a call's arguments as JSON; files belong into the sandbox, not into a message."""

AHEAD_MAX = 300.0
"""Seconds that a backend's clock may be ahead; a call from further off would be younger than any loss of the ledger."""
VARIABLE_MAX = 128 * 1024 - 64
"""Bytes of one variable: Linux holds 128 KiB (``MAX_ARG_STRLEN``), less what our launcher adds."""
ENV_MAX = 1024 * 1024
"""Bytes of all variables: half of what Linux has for them and the arguments (a quarter of an 8 MiB stack)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """What one task calls; the same for all its attempts. ``timeout`` is seconds."""

    reference: Reference
    descriptor: Descriptor = field(repr=False)
    store: PackageStore = field(repr=False)
    dispatch_id: str
    ledger: Call
    input: bytes = field(repr=False)
    env: Mapping[str, str] = field(repr=False)
    expires_at: float
    """Epoch seconds from which on a secret of it is not to be used any more."""
    timeout: int
    sandbox: SandboxRequest

    @property
    def manifest(self) -> Manifest:
        """The pinned package's manifest."""
        return self.descriptor.manifest

    @property
    def effect(self) -> Effect:
        """What the tool does, as its digest has it."""
        return self.manifest.declared

    def check_secrets(self, now: float) -> None:
        """Whether a call may be sent at ``now`` (epoch seconds).

        :raises OperationFailed: a secret's time is over (``auth_denied``, ``token_expired``).
        """
        if now >= self.expires_at:
            category = Category.AUTH_DENIED
            raise OperationFailed(
                Failure(operation="dispatch", stage="unseal", category=category, reason="token_expired")
            )


def ready(request: DispatchRequest, attempt: Attempt, services: Services) -> ToolCall:
    """Check everything that needs no sandbox. Raises InvalidRequest, which names the field and why.

    Whether secrets are still good is asked before a call is sent: one that was sent is looked for all the same.
    """
    config = services.settings
    reference = Reference.parse(request.tool)
    _allowed(reference, config)
    store = services.tools(request.tool_store)
    descriptor = store.describe(reference)
    manifest = descriptor.manifest
    timeout = _timeout(request, manifest, config)
    _identified(request, manifest)
    _keeps_output(request, manifest, config)
    _names_allowed(request, manifest)
    check_arguments(manifest.input_schema, request.arguments)
    text = _input(request.arguments)
    dispatch_id = request.dispatch_id or attempt.task_id
    env, expires_at = _secrets(request, reference, attempt, services)
    _fits({**request.env, **env})
    return ToolCall(
        reference=reference,
        descriptor=descriptor,
        store=store,
        dispatch_id=dispatch_id,
        ledger=Call(
            run_id=request.run_id,
            dispatch_id=dispatch_id,
            fingerprint=_fingerprint(reference, text, request.env),
            issued_at=request.issued_at,
        ),
        input=text,
        env={**request.env, **env},
        expires_at=expires_at,
        timeout=timeout,
        sandbox=_sandbox(request.sandbox, manifest),
    )


def _allowed(reference: Reference, config: Settings) -> None:
    if config.tools_allowed and f"sha256:{reference.digest}" not in config.tools_allowed:
        raise InvalidRequest("tool", "not_allowed")


def _timeout(request: DispatchRequest, manifest: Manifest, config: Settings) -> int:
    if manifest.timeout > config.tool_timeout_max:
        raise InvalidRequest("manifest_timeout", "out_of_range")
    if request.timeout is not None and request.timeout > manifest.timeout:
        raise InvalidRequest("timeout", "out_of_range")
    return request.timeout or manifest.timeout


def _identified(request: DispatchRequest, manifest: Manifest) -> None:
    """Whatever may change the world needs a key of its caller, and the time at which that key was made."""
    if manifest.declared is Effect.READ:
        return
    if request.dispatch_id is None:
        raise InvalidRequest("dispatch_id", "missing")
    if request.issued_at is None:
        raise InvalidRequest("issued_at", "missing")
    if request.issued_at > time.time() + AHEAD_MAX:
        raise InvalidRequest("issued_at", "out_of_range")


def _keeps_output(request: DispatchRequest, manifest: Manifest, config: Settings) -> None:
    """An output that may be too large for a result needs an artifact store, before the tool has run."""
    if manifest.output_limit > config.tool_output_inline and request.artifact_store not in config.artifact_stores:
        raise InvalidRequest("artifact_store", "not_configured")


def _names_allowed(request: DispatchRequest, manifest: Manifest) -> None:
    if request.env.keys() - set(manifest.env):
        raise InvalidRequest("env", "not_allowed")
    if request.secrets.keys() - set(manifest.env):
        raise InvalidRequest("secrets", "not_allowed")


def _fits(env: Mapping[str, str]) -> None:
    sizes = [len(name.encode()) + len(value.encode()) + 2 for name, value in env.items()]
    if max(sizes, default=0) > VARIABLE_MAX or sum(sizes) > ENV_MAX:
        raise InvalidRequest("env", "too_large")


def _input(arguments: Any) -> bytes:
    try:
        text = json.dumps(arguments, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (ValueError, RecursionError):  # a surrogate alone is no text; UnicodeEncodeError is a ValueError
        text = b""
    if not text:
        raise InvalidRequest("arguments", "bad_value")
    if len(text) > INPUT_MAX:
        raise InvalidRequest("arguments", "too_large")
    return text


def _fingerprint(reference: Reference, text: bytes, env: Mapping[str, str]) -> str:
    """A digest over what makes a call this call. Secrets are left out: every sealing makes another box."""
    parts = [str(reference), json.dumps(json.loads(text), sort_keys=True), sorted(env.items())]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _secrets(
    request: DispatchRequest, reference: Reference, attempt: Attempt, services: Services
) -> tuple[dict[str, str], float]:
    """The variables that came sealed, and the epoch seconds at which the first of them ends."""
    expires_at = math.inf
    if not request.secrets:
        return {}, expires_at
    attempt.at("unseal")
    ring = services.keyring
    binding = Binding(run_id=request.run_id, operation="dispatch", subject=tool_subject(reference.digest))
    found: dict[str, str] = {}
    for name, box in request.secrets.items():
        opened = unseal(box, ring, binding, now=0.0)
        if opened.username != name:
            raise InvalidRequest("secrets", "secret_binding")  # sealed for another variable
        found[name] = opened.secret.reveal()
        attempt.secrets.append(found[name])
        expires_at = min(expires_at, opened.expires_at)
    return found, expires_at


def _sandbox(wanted: SandboxRequest, manifest: Manifest) -> SandboxRequest:
    """The sandbox of the request, as the manifest wants it."""
    if manifest.provider not in (None, wanted.provider):
        raise InvalidRequest("sandbox_provider", "provider_mismatch")
    if manifest.template is None or wanted.spec is None:
        return wanted
    if wanted.spec.image not in (None, manifest.template):
        raise InvalidRequest("sandbox_spec_image", "template_mismatch")
    return wanted.model_copy(update={"spec": wanted.spec.model_copy(update={"image": manifest.template})})
