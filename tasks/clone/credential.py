"""Where a clone's token comes from: nowhere, a sealed box, or a mint that all attempts share."""

import time

from pydantic import SecretStr

from tasks.clone.git import GitCredential
from tasks.clone.repository import Repository
from tasks.clone.request import AppCredential, CloneRequest, NoCredential, SealedCredential
from worker.failures.model import InvalidRequest, OperationFailed
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
    only start GitHub's replication again. Another is minted only when that one can be of no use any more.
    """  # noqa: D205 - one sentence
    match request.credential:
        case NoCredential():
            return None
        case SealedCredential(box=box):
            attempt.at("unseal")
            opened = _open(box, request, repository, services)
            known = attempt.known()
        case AppCredential(installation_id=installation_id):
            if _carried(request, repository, attempt, services) is None:
                attempt.carry = _mint(request, repository, installation_id, attempt, services)
            attempt.at("unseal")
            opened = _open(attempt.carry, request, repository, services)
            known = 0.0  # a worker minted it, perhaps long after it had first seen the task
    attempt.secrets.append(opened.secret.reveal())
    return GitCredential(
        username=opened.username,
        token=opened.secret,
        source=opened.credential,
        age=age(opened.minted_at, known=known, now=time.time()),
    )


def age(minted_at: float | None, *, known: float, now: float) -> float | None:
    """Seconds since a token was minted; ``None`` for one that was not.

    At least ``known``, the seconds for which a worker has known it: a backend whose clock is ahead of ours cannot
    keep a token fresh for ever.
    """
    if minted_at is None:
        return None
    return max(0.0, now - minted_at, known)


def revoke(request: CloneRequest, repository: Repository, attempt: Attempt, services: Services) -> None:
    """End a token that this task minted."""
    if not isinstance(request.credential, AppCredential):
        return
    opened = _carried(request, repository, attempt, services)
    if opened is not None:
        services.github.revoke(opened.secret, timeout=REVOKE_TIMEOUT)
    attempt.carry = ""


def _carried(request: CloneRequest, repository: Repository, attempt: Attempt, services: Services) -> Unsealed | None:
    """The token that an earlier attempt minted; ``None``: there is none, or it can be of no use any more.

    Its hour may have passed while the task waited, its key may have left the ring.
    """
    if not attempt.carry:
        return None
    try:
        return _open(attempt.carry, request, repository, services)
    except (InvalidRequest, OperationFailed):
        return None


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
