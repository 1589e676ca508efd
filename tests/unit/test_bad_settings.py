"""Settings that cannot work are refused by the name of their variable, and what was given is never said back."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from worker import startup, startup_files
from worker.app import make_app
from worker.commands.faults import explain
from worker.sandboxes.registry import Registry
from worker.sandboxes.settings import ProviderSettings
from worker.setting_kinds import ProviderName
from worker.settings import Settings

SECRET = "cnry-7Hq2"
BAD = {
    "BROKER_URL": ["", "nonsense", f"http://{SECRET}@h/", "redis://", "redis://h:99999/0", f"redis://:{SECRET}@h/x",
                   f"redis://:{SECRET}@h/0;redis://g/0", "memory://", "filesystem://", f"redis://:{SECRET}@[::1/0"],
    "STATE_URL": ["nonsense", f"http://{SECRET}", "redis://h:0/0", "redis+socket:///s", f"redis://h/{SECRET}"],
    "CLONE_DEADLINE": ["0", "-1", "nan", "inf", "1e308", SECRET],
    "LEASE": ["2", "1e308", "1e12"],
    "SWEEP_EVERY": ["1e-9", "1e12"],
    "QUEUE_WAIT": ["1e308"],
    "RECORD_TTL": ["1e17"],
    "EVENTS_TTL": ["1e308"],
    "LEDGER_TTL": ["1e308"],
    "KEEP_MAX": ["1e300"],
    "ETA_TASK_LIMIT": ["1", "9" * 30],
    "LOCAL_ROOT": ["", "relative"],
    "ALLOW_LOCAL": ["maybe", ""],
    "DOCKER_URL": [SECRET, "http://", "tcp://h:99999"],
    "DOCKER_IMAGE": [""],
    "E2B_API_URL": [SECRET, "ftp://x"],
    "DAYTONA_API_URL": [SECRET],
    "PROVIDER_LIMITS": ["e2b", "e2b=0", f"e2b={SECRET}", f"{SECRET}=3", "=3", "e2b=1,e2b=9", "dayton=3"],
    "ARTIFACT_STORES": ["default", "default=", "=file:///x", f"a b={SECRET}", "d=file:///a,d=file:///b", "d=relative"],
    "HOST_REPOSITORIES": ["app", "app=relative", "app=", "../x=/srv", f"app=https://{SECRET}@h/"],
    "SCRATCH_DIR": ["relative"],
    "HTTP_HOSTS": ["http://h", "h/", "*", f"u:{SECRET}@h", "a b", ","],
    "GIT_PROXY": [SECRET, "ftp://p", f"http://user:{SECRET}@proxy:3128"],
    "TOOL_STORES": ["x", "x=", "x=relative"],
    "TOOLS_ALLOWED": [SECRET, "sha256:abc", ",", f"name@sha256:{'a' * 64}"],
    "TOOL_PACKAGE_MAX": ["1", "9" * 14],
    "GITHUB_API_URL": ["nonsense", f"https://u:{SECRET}@h/"],
    "GITHUB_URL": ["github.com"],
    "DIAGNOSTICS_DIR": ["relative"],
    "LOG_LEVEL": ["TRACE", "debug"],
    "METRICS_PORT": ["0", "70000", SECRET],
    "METRICS_ADDRESS": [""],
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_it_is_refused_by_name(name: str, value: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(f"SANDFERRY_{name}", value)
    with pytest.raises(ValidationError) as caught:
        Settings()
    said = explain(caught.value)
    assert said.startswith(f"sandferry: not valid: SANDFERRY_{name}: ")
    assert SECRET not in said


GOOD = {
    "BROKER_URL": "redis://:p%40ss@[::1]:6380/3",
    "STATE_URL": "unix:///run/redis.sock?db=1",
    "DOCKER_URL": "unix:///run/docker.sock",
    "HTTP_HOSTS": "git.corp:8080,10.0.0.1,[::1]:80",
    "GIT_PROXY": "http://proxy:3128",
    "PROVIDER_LIMITS": "e2b=20, daytona=10",
    "ARTIFACT_STORES": "default=/srv/a,far=s3://bucket/x",
    "GITHUB_API_URL": "https://git.corp/api/v3",
}


@pytest.mark.parametrize("name", GOOD)
def test_what_works_is_taken(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(f"SANDFERRY_{name}", GOOD[name])
    Settings()


@pytest.mark.parametrize("name", ["KEYRING_FILE", "SENTRY_DSN_FILE", "DOCKER_URL", "STATE_URL", "METRICS_PORT"])
def test_what_may_be_unset_may_be_empty(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(f"SANDFERRY_{name}", "")
    assert getattr(Settings(), name.lower()) is None


def test_every_provider_can_be_limited():
    assert set(ProviderName.__args__) == set(Registry(ProviderSettings()).names)


def faults(**values: object) -> list[str]:
    config = Settings(**values)
    return [fault.setting for fault in startup.faults(config, make_app(config).conf)]


@pytest.mark.parametrize(
    "name", ["sentry_dsn_file", "keyring_file", "github_ca_file", "e2b_api_key_file", "daytona_api_key_file"]
)
@pytest.mark.parametrize("content", [None, b"", "ä".encode(), b"\x00" * 10])
def test_a_file_that_is_no_such_file_is_refused(name: str, content: bytes | None, tmp_path: Path):
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
        file.chmod(0o600)
    elif name == "keyring_file":
        assert [fault.setting for fault in startup.notices(Settings(keyring_file=file), {})] == [
            "SANDFERRY_KEYRING_FILE"
        ]
        return
    if content == b"\x00" * 10 and name.endswith("api_key_file"):
        return  # a key is whatever the service says
    assert faults(**{name: file if name != "github_ca_file" else str(file)}) == [f"SANDFERRY_{name.upper()}"]


@pytest.mark.parametrize("dsn", ["https://key@localhost", SECRET, "http://h/1", "ftp://key@h/1"])
def test_a_dsn_that_is_none_is_refused_and_not_said(dsn: str, tmp_path: Path):
    (tmp_path / "dsn").write_text(dsn)
    config = Settings(sentry_dsn_file=tmp_path / "dsn")
    found = [*startup.faults(config, make_app(config).conf), *startup.beat_faults(config)]
    assert [fault.setting for fault in found] == ["SANDFERRY_SENTRY_DSN_FILE"] * 2
    assert dsn not in str(found)


def test_a_github_app_is_set_as_a_whole(tmp_path: Path):
    (tmp_path / "key").write_text("-----BEGIN RSA PRIVATE KEY-----\n")
    assert faults(github_app_id="1") == ["SANDFERRY_GITHUB_APP_KEY_FILE"]
    assert faults(github_app_key_file=tmp_path / "key") == ["SANDFERRY_GITHUB_APP_KEY_FILE"]
    assert faults(github_app_id="1", github_app_key_file=tmp_path / "no") == ["SANDFERRY_GITHUB_APP_KEY_FILE"]
    assert faults(github_app_id="1", github_app_key_file=tmp_path / "key") == []


def test_places_that_cannot_be_are_refused(tmp_path: Path):
    (tmp_path / "file").write_text("")
    assert faults(diagnostics_dir=tmp_path / "file" / "x") == ["SANDFERRY_DIAGNOSTICS_DIR"]
    assert faults(diagnostics_dir=tmp_path / "new" / "x") == []
    assert faults(scratch_dir=tmp_path / "new") == ["SANDFERRY_SCRATCH_DIR"]
    assert faults(artifact_stores="default=nosuch://x") == ["SANDFERRY_ARTIFACT_STORES"]
    assert faults(tool_stores="default=memory://x") == []


@pytest.mark.parametrize("url", ["nonsense", f"http://u:{SECRET}@h/", "disabled://"])
def test_a_result_backend_that_is_none_is_refused(url: str):
    config = Settings(result_backend=url)
    found = startup.faults(config, make_app(config).conf)
    assert [fault.setting for fault in found] == ["SANDFERRY_RESULT_BACKEND"]
    assert SECRET not in str(found)


def test_a_variable_that_is_misspelt_is_said():
    found = dict(startup_files.misspelt({"SANDFERRY_TOOL_ALLOWED": SECRET, "SANDFERRY_LEASE": "3", "HOME": "/"}))
    assert found == {"SANDFERRY_TOOL_ALLOWED": "is no setting and has no effect; is SANDFERRY_TOOLS_ALLOWED meant?"}
