"""The digest of a bundle: what ``git hash-object --no-filters`` says in a SHA-256 repository. Pure.

A sandbox needs nothing but git to compute it; ``sha256sum`` is not in every image.
"""

import hashlib
from collections.abc import Iterable


def bundle_digest(size: int, chunks: Iterable[bytes]) -> str:
    """64 hex digits of ``chunks``, which together have ``size`` bytes.

    >>> bundle_digest(0, [])
    '473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813'
    """
    digest = hashlib.sha256(b"blob %d\0" % size)
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()
