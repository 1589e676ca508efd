"""What a worker refuses to start with, and what it warns of."""

from typing import Any

import pytest

from worker import startup
from worker.app import make_app
from worker.settings import Settings


class Store:
    """A server's answers to CONFIG GET."""

    def __init__(self, **settings: str) -> None:
        self.settings = {name.replace("_", "-"): value for name, value in settings.items()}

    def config_get(self, name: str) -> dict[str, str]:
        return {name: self.settings[name]} if name in self.settings else {}


def faults(config: Settings | None = None, **changes: Any) -> list[str]:
    config = config or Settings()
    app = make_app(config)
    app.conf.update(changes)
    return [fault.setting for fault in startup.faults(config, app.conf)]


def test_what_we_ship_is_taken():
    assert faults() == []
    assert faults(Settings(broker_url="amqp://127.0.0.1", state_url="redis://127.0.0.1")) == []


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"task_time_limit": None}, "task_soft_time_limit"),
        ({"task_soft_time_limit": 4000, "task_time_limit": 4000}, "task_soft_time_limit"),
        ({"task_soft_time_limit": 3600}, "task_soft_time_limit"),
        ({"broker_transport_options": {}}, "visibility_timeout"),
        ({"broker_transport_options": {"visibility_timeout": 3720}}, "visibility_timeout"),
        ({"broker_transport_options": {"visibility_timeout": 3900}}, "visibility_timeout"),
        ({"task_acks_late": False}, "task_acks_late"),
        ({"task_reject_on_worker_lost": False}, "task_acks_late"),
        ({"task_track_started": True}, "task_track_started"),
        ({"worker_eta_task_limit": None}, "worker_eta_task_limit"),
        ({"accept_content": ["json", "pickle"]}, "accept_content"),
        ({"task_serializer": "pickle"}, "accept_content"),
        ({"result_serializer": "yaml"}, "accept_content"),
        ({"result_extended": True}, "result_extended"),
        ({"task_send_sent_event": True}, "result_extended"),
    ],
)
def test_what_loses_or_duplicates_is_refused(changes: dict[str, Any], setting: str):
    assert faults(**changes) == [setting]


@pytest.mark.parametrize(
    ("name", "found", "refused"),
    [("celery", "5.6.3", True), ("celery", "5.7.0", False), ("billiard", "4.3.1", True), ("billiard", "4.3.2", False)],
)
def test_old_pairs_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, found: str, refused: bool):
    monkeypatch.setattr(startup, "version", lambda asked: found if asked == name else "9.9.9")
    assert faults() == ([name] if refused else [])


@pytest.mark.parametrize(
    ("store", "settings"),
    [
        (Store(maxmemory_policy="noeviction", appendonly="yes"), []),
        (Store(maxmemory_policy="allkeys-lru", appendonly="yes"), ["maxmemory-policy"]),
        (Store(maxmemory_policy="noeviction", appendonly="no"), ["appendonly"]),
        (Store(), []),
    ],
)
def test_a_store_that_forgets_is_warned_of_with_the_consequence(store: Store, settings: list[str]):
    found = startup.warnings(Settings(), store)
    assert [fault.setting for fault in found] == settings
    assert all("set " in fault.consequence for fault in found)


def test_rabbitmq_is_warned_of_long_jobs():
    config = Settings(broker_url="amqp://127.0.0.1", state_url="redis://127.0.0.1")
    found = startup.warnings(config, Store(maxmemory_policy="noeviction", appendonly="yes"))
    assert [fault.setting for fault in found] == ["consumer_timeout"]
