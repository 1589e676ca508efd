"""Hosted providers for the tests: doubles on loopback and settings that lead to them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.doubles import daytona, e2b
from tests.rig.jobs import Service, service
from worker.demo.broker import embedded
from worker.sandboxes.settings import DaytonaSettings, E2BSettings, ProviderSettings

NAMES = ("daytona", "e2b")


@contextmanager
def double(name: str, home: Path, **options: Any) -> Iterator[Any]:
    """A double of the provider; its sandboxes lie in ``home``."""
    kind, key = {
        "e2b": (e2b.FaultyE2B, e2b.API_KEY),
        "daytona": (daytona.FaultyDaytona, daytona.API_KEY),
    }[name]
    home.mkdir(parents=True, exist_ok=True)
    key_file(name, home).write_text(key)
    with kind(home / "sandboxes", api_key=key, **options) as made:
        made.home = home
        yield made


def key_file(name: str, home: Path) -> Path:
    return home / f"{name}.key"


def provider_settings(name: str, made: Any, **more: Any) -> ProviderSettings:
    """Settings that lead to a double."""
    file = key_file(name, made.home)
    if name == "e2b":
        return ProviderSettings(e2b=E2BSettings(api_key_file=file, api_url=made.url, sandbox_url=made.url, **more))
    return ProviderSettings(daytona=DaytonaSettings(api_key_file=file, api_url=made.api_url, **more))


def environment(name: str, made: Any) -> dict[str, str]:
    """The same as settings of the service, without their prefix."""
    file = str(key_file(name, made.home))
    if name == "e2b":
        return {"E2B_API_KEY_FILE": file, "E2B_API_URL": made.url, "E2B_SANDBOX_URL": made.url}
    return {"DAYTONA_API_KEY_FILE": file, "DAYTONA_API_URL": made.api_url}


@contextmanager
def hosted_service(name: str, home: Path, **more: str) -> Iterator[Service]:
    """A service whose sandboxes are those of a double, which is its ``double``."""
    with (
        double(name, home / name) as made,
        embedded() as url,
        service(home, url, **environment(name, made), **more) as running,
    ):
        running.double = made
        yield running
