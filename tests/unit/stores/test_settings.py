import pytest
from pydantic import ValidationError

from worker.settings import Settings, is_redis


def refused(**values) -> str:
    with pytest.raises(ValidationError) as caught:
        Settings(**values)
    return str(caught.value)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"visibility_timeout": 3900, "deadline_max": 3600}, "visibility_timeout must exceed deadline_max"),
        ({"tool_timeout_max": 6780}, "visibility_timeout must exceed tool_timeout_max"),
        ({"tool_package_max": 10}, "tool_package_max"),
        ({"record_ttl": 86_400, "result_expires": 86_400}, "record_ttl must exceed"),
        ({"record_ttl": 7000, "result_expires": 10}, "record_ttl must exceed"),
        ({"broker_url": "amqp://guest:cnry@host//"}, "state_url must be a redis"),
        ({"lease": 2.9}, "lease"),
        ({"lease": float("nan")}, "lease"),
        ({"sweep_every": 0}, "sweep_every"),
        ({"queue_wait": float("inf")}, "queue_wait"),
        ({"key_prefix": "a b"}, "key_prefix"),
        ({"key_prefix": ""}, "key_prefix"),
        ({"eta_task_limit": 99}, "eta_task_limit"),
        ({"log_level": "TRACE"}, "log_level"),
        ({"diagnostics_max_bytes": 10}, "diagnostics_max_bytes"),
    ],
)
def test_what_cannot_work_is_refused_by_name_and_without_its_value(values, word):
    text = refused(**values)
    assert word in text
    assert "cnry" not in text
    assert "input_value" not in text


def test_limits_that_just_hold_are_accepted():
    assert Settings(visibility_timeout=3901, deadline_max=3600).visibility_timeout == 3901
    assert Settings(lease=3).lease == 3
    assert Settings(record_ttl=86_401, result_expires=86_400).record_ttl == 86_401


def test_addresses_follow_from_the_broker():
    config = Settings(broker_url="redis://h/1")
    assert (config.records_url, config.results_url) == ("redis://h/1", "redis://h/1")
    config = Settings(broker_url="amqp://h//", state_url="redis://h/2")
    assert (config.records_url, config.results_url) == ("redis://h/2", "redis://h/2")
    config = Settings(broker_url="redis://h/1", state_url="redis://h/2", result_backend="rpc://")
    assert (config.records_url, config.results_url) == ("redis://h/2", "rpc://")


def test_lists_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SANDFERRY_HTTP_HOSTS", " a:80, b ,,")
    monkeypatch.setenv("SANDFERRY_DOCKER_IMAGES", "")
    config = Settings()
    assert config.http_hosts == ("a:80", "b")
    assert config.docker_images == ()


@pytest.mark.parametrize(
    ("url", "expected"),
    [("redis://h", True), ("rediss://h", True), ("unix:///s", True), ("amqp://h", False), ("sqla+sqlite://", False)],
)
def test_is_redis(url, expected):
    assert is_redis(url) is expected


def test_tools_have_their_places_and_their_time():
    a, b = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"
    config = Settings(tool_stores="default=/srv/tools, other=s3://bucket/tools", tools_allowed=f"{a}, {b}")
    assert config.tool_stores == {"default": "/srv/tools", "other": "s3://bucket/tools"}
    assert config.tools_allowed == (a, b)
    assert Settings(tool_timeout_max=6779).longest_job == 6779 + 120
    assert Settings(tool_timeout_max=60).longest_job == 3600
