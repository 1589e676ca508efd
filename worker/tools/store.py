"""Where packages are kept: a place of settings, addressed by digest. What is there never changes."""

import secrets
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from threading import Lock
from typing import Any

from worker.failures.model import InvalidRequest
from worker.tools.package import Descriptor, Package, Reference, descriptor_size, read_descriptor, unpack

_KEPT = 256
"""Descriptors a process remembers: a few kB each."""
_HEADER = 512


class PackageStore:
    """One place: ``<root>/sha256/<aa>/<digest>.tar``. ``url`` is fsspec's (``file:///srv/tools``, ``s3://b/t``)."""

    def __init__(self, url: str, **options: Any) -> None:
        import fsspec  # noqa: PLC0415 - only workers that run tools need it

        self._fs, self._root = fsspec.core.url_to_fs(url, **options)
        self._known: OrderedDict[str, Descriptor] = OrderedDict()
        self._lock = Lock()

    def put(self, package: Package) -> bool:
        """Keep a package; says whether it is new. One that is there already is left alone, a damaged one replaced."""
        key = self._key(package.descriptor.digest)
        if self._fs.exists(key) and self._fs.cat_file(key) == package.archive:
            return False
        self._fs.makedirs(key.rpartition("/")[0], exist_ok=True)
        temporary = f"{key}.{secrets.token_hex(8)}.part"
        try:
            with self._fs.open(temporary, "wb") as file:
                file.write(package.archive)
            self._fs.mv(temporary, key)
        finally:
            with suppress(FileNotFoundError):
                self._fs.rm(temporary)
        return True

    def describe(self, reference: Reference) -> Descriptor:
        """What a package is, its digest checked. Read once per process.

        :raises InvalidRequest: ``tool``: ``not_found``, ``digest_mismatch``, or another name (``name_mismatch``).
        """
        with self._lock:
            found = self._known.get(reference.digest)
        if found is None:
            found = read_descriptor(self._head(reference.digest))
            if found.digest != reference.digest:
                raise InvalidRequest("tool", "digest_mismatch")
        if found.manifest.name != reference.name:
            raise InvalidRequest("tool", "name_mismatch")
        with self._lock:
            self._known[reference.digest] = found
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return found

    def fetch(self, reference: Reference, *, limit: int) -> Package:
        """A whole package, every byte checked. Raises as :meth:`describe` and :func:`unpack` do."""
        try:
            with self._fs.open(self._key(reference.digest), "rb") as file:
                package = unpack(file.read(limit + 1), limit=limit)
        except FileNotFoundError:
            raise InvalidRequest("tool", "not_found") from None
        if package.descriptor.reference != reference:
            raise InvalidRequest("tool", "digest_mismatch")
        return package

    def _head(self, digest: str) -> bytes:
        try:
            with self._fs.open(self._key(digest), "rb") as file:
                header: bytes = file.read(_HEADER)
                rest: bytes = file.read(descriptor_size(header) - len(header))
        except FileNotFoundError:
            raise InvalidRequest("tool", "not_found") from None
        return header + rest

    def _key(self, digest: str) -> str:
        return f"{self._root.rstrip('/')}/sha256/{digest[:2]}/{digest}.tar"


def package_store(places: Mapping[str, str], name: str) -> PackageStore:
    """The store that settings place under ``name``. Raises InvalidRequest (``tool_store``, ``not_configured``)."""
    if name not in places:
        raise InvalidRequest("tool_store", "not_configured")
    return PackageStore(places[name])
