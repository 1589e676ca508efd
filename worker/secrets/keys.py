"""Key pairs of the sealed box (X25519), and a ring of them. Pure but for the making of a key.

The binary form of a key is libsodium's 32 bytes; its text form is base64url without padding. A key's id is
the first 16 hexadecimal digits of the SHA-256 of its public key, so nobody has to keep the two together.
"""

import base64
import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from worker.secrets.secret import Secret

KEY_BYTES = 32
"""Length of both halves of a key pair (libsodium ``crypto_box_PUBLICKEYBYTES``)."""
ID_DIGITS = 16
"""Hexadecimal digits of a key id: 64 bits tell the few keys of a ring apart."""

_BASE64URL = re.compile("[A-Za-z0-9_-]*")


def encode(data: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode(text: str) -> bytes:
    """The bytes of a base64url text, padded or not.

    :raises ValueError: a character outside the alphabet, or a length that no bytes have.
    """
    body = text.rstrip("=")
    if _BASE64URL.fullmatch(body) is None or len(body) % 4 == 1:
        raise ValueError("not base64url")
    return base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The half of a key that may be shown: all that a backend needs to seal."""

    id: str
    created: datetime
    public_key: bytes

    @property
    def text(self) -> str:
        """The public key as base64url."""
        return encode(self.public_key)


@dataclass(frozen=True, slots=True)
class Key:
    """A key pair. ``private_key`` is base64url."""

    public: PublicKey
    private_key: Secret


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Key pairs, oldest first. The last one seals; all of them open."""

    keys: tuple[Key, ...]

    @property
    def current(self) -> PublicKey:
        """The key to seal with.

        :raises LookupError: the ring is empty.
        """
        if not self.keys:
            raise LookupError("the key ring is empty")
        return self.keys[-1].public

    def find(self, key_id: str) -> Key | None:
        """The key pair with this id."""
        return next((key for key in self.keys if key.public.id == key_id), None)

    def public(self) -> tuple[PublicKey, ...]:
        """Ids, dates and public keys; oldest first."""
        return tuple(key.public for key in self.keys)

    def with_new(self, key: Key) -> "KeyRing":
        """This ring with one more key, which becomes the current one."""
        return KeyRing((*self.keys, key))

    def without(self, key_id: str) -> "KeyRing":
        """This ring after a key has retired; its boxes no longer open."""
        return KeyRing(tuple(key for key in self.keys if key.public.id != key_id))


def key_id(public_key: bytes) -> str:
    """The id of a public key."""
    return hashlib.sha256(public_key).hexdigest()[:ID_DIGITS]


def read_public_key(text: str) -> bytes:
    """The 32 bytes of a public key written as base64url.

    :raises ValueError: it is no such text; the value is not echoed.
    """
    data = decode(text.strip())
    if len(data) != KEY_BYTES:
        raise ValueError("a public key has 32 bytes")
    return data


def generate(now: datetime | None = None) -> Key:
    """A new key pair, dated ``now`` (UTC)."""
    from nacl.public import PrivateKey  # noqa: PLC0415 - a worker that never unseals does not pay for PyNaCl

    private = PrivateKey.generate()
    public = bytes(private.public_key)
    created = (now or datetime.now(UTC)).replace(microsecond=0)
    return Key(PublicKey(key_id(public), created, public), Secret(encode(bytes(private))))
