"""Providers by name, each built on its first use."""

import importlib.util
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
    _require("docker")
    from worker.sandboxes.docker.provider import DockerProvider  # noqa: PLC0415 - needs the SDK

    return DockerProvider(settings.docker)


def _daytona(settings: ProviderSettings) -> Provider:
    _require("daytona")
    from worker.sandboxes.daytona.provider import DaytonaProvider  # noqa: PLC0415 - a driver is loaded on first use

    settings.daytona.api_key()
    return DaytonaProvider(settings.daytona)


def _e2b(settings: ProviderSettings) -> Provider:
    _require("e2b")
    from worker.sandboxes.e2b.provider import E2BProvider  # noqa: PLC0415 - a driver is loaded on first use

    settings.e2b.api_key()
    return E2BProvider(settings.e2b)


def _require(package: str) -> None:
    """Refuse a provider whose extra is missing, without importing its SDK."""
    if importlib.util.find_spec(package) is None:
        raise InvalidRequest("sandbox_provider", "sdk_not_installed")


_BUILDERS: dict[str, Callable[[ProviderSettings], Provider]] = {
    "local": _local,
    "docker": _docker,
    "daytona": _daytona,
    "e2b": _e2b,
}


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
            (its extra is missing), ``not_configured`` (its key is) or ``local_not_allowed``.
        """
        if name not in _BUILDERS:
            raise InvalidRequest("sandbox_provider", "unknown_provider")
        if name not in self._built:
            self._built[name] = _BUILDERS[name](self._settings)
        return self._built[name]
