"""Providers by name, each built on its first use."""

import importlib
from collections.abc import Callable

from worker.failures.model import InvalidRequest
from worker.sandboxes.base import Provider
from worker.sandboxes.settings import ProviderSettings


def _local(settings: ProviderSettings) -> Provider:
    from worker.sandboxes.local.provider import LocalProvider  # noqa: PLC0415 - a driver is loaded on first use

    if not settings.local.allowed:
        raise InvalidRequest("sandbox_provider", "local_not_allowed")
    return LocalProvider(settings.local.root)


def _docker(settings: ProviderSettings) -> Provider:
    try:
        importlib.import_module("docker")
    except ImportError:
        raise InvalidRequest("sandbox_provider", "sdk_not_installed") from None
    from worker.sandboxes.docker.provider import DockerProvider  # noqa: PLC0415 - needs the SDK

    return DockerProvider(settings.docker)


_BUILDERS: dict[str, Callable[[ProviderSettings], Provider]] = {"local": _local, "docker": _docker}


class Registry:
    """Drivers of one process. Cheap to make; holds at most one driver per provider."""

    def __init__(self, settings: ProviderSettings) -> None:
        self._settings = settings
        self._built: dict[str, Provider] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Every provider of this release."""
        return tuple(_BUILDERS)

    def get(self, name: str) -> Provider:
        """The provider of this name.

        :raises InvalidRequest: ``sandbox_provider`` with reason ``unknown_provider``, ``sdk_not_installed``
            (its extra is missing) or ``local_not_allowed``.
        """
        if name not in _BUILDERS:
            raise InvalidRequest("sandbox_provider", "unknown_provider")
        if name not in self._built:
            self._built[name] = _BUILDERS[name](self._settings)
        return self._built[name]
