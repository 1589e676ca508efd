"""Where a clone's token comes from: nowhere, a sealed box, or a mint that all attempts share."""

import time

from pydantic import SecretStr

from tasks.clone.git import GitCredential
from tasks.clone.repository import Repository
from tasks.clone.request import AppCredential, CloneRequest, NoCredential, SealedCredential
from worker.failures.model import InvalidRequest
from worker.retrying.attempt import Attempt
from worker.retrying.services import Services
from worker.secrets.sealed import Binding, Plaintext, Unsealed, git_subject, seal, unseal

MINT_TIMEOUT = 30.0
"""Seconds for looking the installation up and minting."""
REVOKE_TIMEOUT = 5.0
"""Seconds; a token that could not be revoked ends by itself within the hour."""
APP_USERNAME = "x-access-token"
"""What GitHub wants as the user name of an installation token."""


def credential_of(
    request: CloneRequest, repository: Repository, attempt: Attempt, services: Services
) -> GitCredential | None:
    """Open the box, or mint once: the minted token travels sealed to the next attempt, as a new one would
    only start GitHub's replication again.
    """  # noqa: D205 - one sentence
    match request.credential:
        case NoCredential():
            return None
        case SealedCredential(box=box):
            attempt.at("unseal")
            opened = _open(box, request, repository, services)
        case AppCredential(installation_id=installation_id):
            attempt.carry = attempt.carry or _mint(request, repository, installation_id, attempt, services)
            attempt.at("unseal")
            opened = _open(attempt.carry, request, repository, services)
    attempt.secrets.append(opened.secret.reveal())
    return GitCredential(
        username=opened.username,
        token=opened.secret,
        source=opened.credential,
        age=age(opened.minted_at, first_seen=attempt.first_seen, now=time.time()),
    )


def age(minted_at: float | None, *, first_seen: float, now: float) -> float | None:
    """Seconds since a token was minted; ``None`` for one that was not.

    At least the time since a worker first saw the task: a backend whose clock is ahead of ours cannot keep a
    token fresh for ever.
    """
    if minted_at is None:
        return None
    return max(0.0, now - minted_at, now - first_seen)


def revoke(request: CloneRequest, repository: Repository, attempt: Attempt, services: Services) -> None:
    """End a token that this task minted."""
    if not isinstance(request.credential, AppCredential) or not attempt.carry:
        return
    opened = _open(attempt.carry, request, repository, services)
    services.github.revoke(opened.secret, timeout=REVOKE_TIMEOUT)
    attempt.carry = ""


def _open(box: str, request: CloneRequest, repository: Repository, services: Services) -> Unsealed:
    return unseal(box, services.keyring, _binding(request, repository), time.time())


def _mint(
    request: CloneRequest, repository: Repository, installation_id: int | None, attempt: Attempt, services: Services
) -> str:
    if repository.origin != services.settings.github_url or len(repository.owner) != 1:
        raise InvalidRequest("repository_url", "not_github")
    attempt.at("mint")
    ring = services.keyring
    minted = services.github.mint(
        repository.owner[0],
        repository.name,
        installation_id=installation_id,
        timeout=min(MINT_TIMEOUT, attempt.deadline.remaining()),
    )
    attempt.secrets.append(minted.token.reveal())
    binding = _binding(request, repository)
    return seal(
        ring.current.public_key,
        Plaintext(
            run_id=binding.run_id,
            operation=binding.operation,
            subject=binding.subject,
            expires_at=minted.expires_at,
            minted_at=minted.minted_at,
            username=APP_USERNAME,
            secret=SecretStr(minted.token.reveal()),
        ),
    )


def _binding(request: CloneRequest, repository: Repository) -> Binding:
    return Binding(run_id=request.run_id, operation="clone", subject=git_subject(repository.url))
