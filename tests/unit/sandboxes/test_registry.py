"""Providers by name."""

import subprocess
import sys

import pytest

from worker.failures.model import InvalidRequest
from worker.sandboxes.registry import Registry
from worker.sandboxes.settings import DaytonaSettings, E2BSettings, LocalSettings, ProviderSettings


def test_builds_each_once(tmp_path):
    key = tmp_path / "key"
    key.write_text("k\n")
    registry = Registry(
        ProviderSettings(
            local=LocalSettings(allowed=True, root=tmp_path),
            daytona=DaytonaSettings(api_key_file=key),
            e2b=E2BSettings(api_key_file=key),
        )
    )
    assert registry.names == ("local", "docker", "daytona", "e2b")
    for name in registry.names:
        assert registry.get(name).name == name
        assert registry.get(name) is registry.get(name)


@pytest.mark.parametrize("name", ["", "E2B", "daytona-sdk", "Docker", "local ", "__class__"])
def test_unknown(name):
    with pytest.raises(InvalidRequest, match="sandbox_provider: unknown_provider"):
        Registry(ProviderSettings()).get(name)


def test_local_is_refused_unless_allowed():
    with pytest.raises(InvalidRequest, match="sandbox_provider: local_not_allowed"):
        Registry(ProviderSettings()).get("local")


@pytest.mark.parametrize("name", ["docker", "daytona", "e2b"])
def test_an_sdk_that_is_not_installed(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InvalidRequest, match="sandbox_provider: sdk_not_installed"):
        Registry(ProviderSettings()).get(name)


@pytest.mark.parametrize("name", ["daytona", "e2b"])
@pytest.mark.parametrize("content", [None, "", "\n", "kéy"])
def test_a_key_that_is_not_there(tmp_path, name, content):
    file = tmp_path / "key"
    if content is not None:
        file.write_text(content)
    settings = ProviderSettings(daytona=DaytonaSettings(api_key_file=file), e2b=E2BSettings(api_key_file=file))
    with pytest.raises(InvalidRequest, match="sandbox_provider: not_configured"):
        Registry(settings).get(name)


def test_drivers_import_their_sdk_on_first_use(tmp_path):
    code = """
import sys
from pathlib import Path
from worker.sandboxes.registry import Registry
from worker.sandboxes.settings import DaytonaSettings, E2BSettings, ProviderSettings
key = Path(sys.argv[1])
registry = Registry(ProviderSettings(daytona=DaytonaSettings(api_key_file=key), e2b=E2BSettings(api_key_file=key)))
registry.get("e2b"), registry.get("daytona")
sys.exit(bool({"e2b", "daytona", "httpx", "aiohttp"} & set(sys.modules)))
"""
    key = tmp_path / "key"
    key.write_text("k")
    assert subprocess.run([sys.executable, "-c", code, str(key)], check=False).returncode == 0
