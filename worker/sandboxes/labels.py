"""Labels: how a sandbox is known as ours, and as one run's. Pure."""

import hashlib
from collections.abc import Mapping

from worker.failures.model import InvalidRequest
from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN


def matches(found: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """``found`` are labels of ours and hold every wanted one exactly."""
    return LABEL_RUN in found and all(found.get(key) == value for key, value in wanted.items())


def require_ours(found: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """Refuse a sandbox that is not ours, or another run's.

    :raises InvalidRequest: ``sandbox_id: foreign_sandbox``.
    """
    if not matches(found, wanted):
        raise InvalidRequest("sandbox_id", "foreign_sandbox")


def require_complete(labels: Mapping[str, str]) -> None:
    """Refuse to create a sandbox that could never be found again.

    :raises ValueError: the run's or the request's label is missing or empty; a fault of the caller.
    """
    if not labels.get(LABEL_RUN) or not labels.get(LABEL_REQUEST):
        raise ValueError("labels need a run and a request")


def digest(labels: Mapping[str, str]) -> str:
    """One create's identity: 32 hexadecimal digits of a sha256 over its run and its request."""
    both = f"{labels[LABEL_RUN]}\0{labels[LABEL_REQUEST]}"
    return hashlib.sha256(both.encode()).hexdigest()[:32]
