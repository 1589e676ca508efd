"""Providers by name."""

import sys

import pytest

from worker.failures.model import InvalidRequest
from worker.sandboxes.registry import Registry
from worker.sandboxes.settings import LocalSettings, ProviderSettings


def test_builds_each_once(tmp_path):
    registry = Registry(ProviderSettings(local=LocalSettings(allowed=True, root=tmp_path)))
    assert registry.names == ("local", "docker")
    for name in registry.names:
        assert registry.get(name).name == name
        assert registry.get(name) is registry.get(name)


@pytest.mark.parametrize("name", ["", "e2b", "daytona", "Docker", "local ", "__class__"])
def test_unknown(name):
    with pytest.raises(InvalidRequest, match="sandbox_provider: unknown_provider"):
        Registry(ProviderSettings()).get(name)


def test_local_is_refused_unless_allowed():
    with pytest.raises(InvalidRequest, match="sandbox_provider: local_not_allowed"):
        Registry(ProviderSettings()).get("local")


def test_an_sdk_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "docker", None)
    with pytest.raises(InvalidRequest, match="sandbox_provider: sdk_not_installed"):
        Registry(ProviderSettings()).get("docker")
