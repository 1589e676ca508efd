"""Credentials sealed to the worker: libsodium sealed boxes bound to what they are good for.

Text form: ``sbx1.<key id>.<base64url of crypto_box_seal(JSON)>``. See ``docs/secrets.md``.
"""

import json
import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, StringConstraints, model_validator

from worker.failures.model import Category, Credential, Failure, InvalidRequest, OperationFailed
from worker.secrets.keys import Key, KeyRing, decode, encode, key_id
from worker.secrets.secret import Secret
from worker.secrets.subject import git_subject

__all__ = ["BOX_LIMIT", "FIELD", "Binding", "Plaintext", "Unsealed", "git_subject", "seal", "unseal"]

BOX_LIMIT = 16 * 1024
"""Characters of a box that are read at most; GitHub's longest tokens (520 characters) make 1.1 kB."""
FIELD = "credential_box"
"""The request's field that errors name."""
EPOCH_LIMIT = 2**40
"""Seconds since 1970 that a date may have: far away, yet finite in every language's numbers."""

_TEXT = re.compile(r"sbx1\.(?P<id>[0-9a-f]{16})\.(?P<box>[A-Za-z0-9_-]+={0,2})")

_Name = Annotated[str, StringConstraints(min_length=1, max_length=512)]
_Epoch = Annotated[float, Field(ge=0, le=EPOCH_LIMIT, allow_inf_nan=False)]
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What a box must have been sealed for: one run, one operation, one subject.

    The subject of git is :func:`git_subject` of the URL.
    """

    run_id: str
    operation: str
    subject: str


class Plaintext(BaseModel):
    """What a backend seals. ``expires_at`` and ``minted_at`` are seconds since 1970.

    ``minted_at`` says that the token is fresh from its issuer and may need time to be known everywhere.
    An unknown field is refused: it may be a restriction, and passing over it would widen the box.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    v: Literal[1] = 1
    run_id: _Name
    operation: _Name
    subject: _Name
    expires_at: _Epoch
    minted_at: _Epoch | None = None
    username: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    secret: SecretStr = Field(min_length=1, max_length=8192)

    @model_validator(mode="after")
    def _one_line(self) -> "Plaintext":
        # A line end would write a line of its own into git's credential protocol: another host, for one.
        if _CONTROLS.search(self.username) or _CONTROLS.search(self.secret.get_secret_value()):
            raise ValueError("control characters")
        return self

    @property
    def binding(self) -> Binding:
        """The use it was sealed for."""
        return Binding(run_id=self.run_id, operation=self.operation, subject=self.subject)

    def to_json(self) -> bytes:
        """The bytes to seal; the secret is in them."""
        fields = self.model_dump(exclude={"secret"}, exclude_none=True)
        return json.dumps({**fields, "secret": self.secret.get_secret_value()}, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsealed:
    """A credential taken out of its box. Dates are seconds since 1970."""

    username: str
    secret: Secret
    expires_at: float
    minted_at: float | None

    @property
    def credential(self) -> Credential:
        """Whether rejection may be a matter of the token's age."""
        return Credential.STATIC if self.minted_at is None else Credential.MINTED


def seal(public_key: bytes, plaintext: Plaintext) -> str:
    """The text form of a box that only the owner of ``public_key`` (32 bytes) opens.

    :raises ValueError: not a usable public key, or more than a box may hold.
    """
    from nacl.public import PublicKey, SealedBox  # noqa: PLC0415 - worker memory is budgeted

    sealed = SealedBox(PublicKey(public_key)).encrypt(plaintext.to_json())
    text = f"sbx1.{key_id(public_key)}.{encode(sealed)}"
    if len(text) > BOX_LIMIT:
        raise ValueError("more than a box may hold")
    return text


def unseal(box: str, ring: KeyRing, binding: Binding, now: float) -> Unsealed:
    """Open a box at ``now`` (seconds since 1970) for exactly this use.

    :raises InvalidRequest: ``credential_box`` does not open (``secret_unsealable``), names no key of ours
        (``secret_key_unknown``) or was sealed for another use (``secret_binding``).
    :raises OperationFailed: its time is over (``auth_denied``, ``token_expired``).
    """
    match = _TEXT.fullmatch(box) if len(box) <= BOX_LIMIT else None
    if match is None:
        raise InvalidRequest(FIELD, "secret_unsealable")
    key = ring.find(match["id"])
    if key is None:
        raise InvalidRequest(FIELD, "secret_key_unknown")
    plaintext = _open(match["box"], key)
    if plaintext is None:
        raise InvalidRequest(FIELD, "secret_unsealable")
    if plaintext.binding != binding:
        raise InvalidRequest(FIELD, "secret_binding")
    _check_expiry(plaintext, binding.operation, now)
    return Unsealed(
        username=plaintext.username,
        secret=Secret(plaintext.secret.get_secret_value()),
        expires_at=plaintext.expires_at,
        minted_at=plaintext.minted_at,
    )


def _check_expiry(plaintext: Plaintext, operation: str, now: float) -> None:
    if now < plaintext.expires_at:
        return
    credential = Credential.STATIC if plaintext.minted_at is None else Credential.MINTED
    raise OperationFailed(
        Failure(
            operation=operation,
            stage="unseal",
            credential=credential,
            category=Category.AUTH_DENIED,
            reason="token_expired",
        )
    )


def _open(text: str, key: Key) -> Plaintext | None:
    """The plaintext, or ``None``: why a box does not open is nobody's business, and errors echo input."""
    from nacl.exceptions import CryptoError  # noqa: PLC0415 - worker memory is budgeted
    from nacl.public import PrivateKey, SealedBox  # noqa: PLC0415 - same

    try:
        opened = SealedBox(PrivateKey(decode(key.private_key.reveal()))).decrypt(decode(text))
        return Plaintext.model_validate_json(opened)
    except (CryptoError, TypeError, ValueError):  # pydantic's ValidationError is a ValueError
        return None
