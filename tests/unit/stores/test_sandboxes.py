import time

import pytest

from worker.stores.redis import connect
from worker.stores.sandboxes import SandboxRegistry


@pytest.fixture
def registry(valkey_url: str) -> SandboxRegistry:
    return SandboxRegistry(connect(valkey_url), prefix="m")


def due(registry: SandboxRegistry) -> list[str]:
    return [kept.sandbox_id for kept in registry.due()]


def test_a_promise_is_never_shortened(registry: SandboxRegistry):
    now = time.time()
    registry.keep("local", "s", run_id="r", seconds=1000)
    registry.hold("local", "s", run_id="r", task_id="t", seconds=10)
    registry.keep("local", "s", run_id="r", seconds=0)
    (kept,) = registry.all()
    assert now + 999 < kept.due < now + 1002
    assert (kept.provider, kept.sandbox_id, kept.run_id) == ("local", "s", "r")
    registry.keep("local", "s", run_id="r", seconds=2000)
    assert registry.all()[0].due > now + 1999


def test_a_holder_keeps_it_until_it_lets_go(registry: SandboxRegistry):
    registry.keep("local", "s", run_id="r", seconds=-1)
    registry.hold("local", "s", run_id="r", task_id="a", seconds=100)
    registry.hold("local", "s", run_id="r", task_id="b", seconds=50)
    registry.let_go("local", "s", run_id="r", task_id="a")
    assert due(registry) == []
    registry.let_go("local", "s", run_id="r", task_id="b")
    assert due(registry) == ["s"]


def test_due_is_what_was_given_up_or_whose_time_is_over(registry: SandboxRegistry):
    registry.keep("local", "kept", run_id="r", seconds=1000)
    registry.keep("local", "over", run_id="r", seconds=-1)
    registry.hold("docker", "lost", run_id="r", task_id="t", seconds=500)
    registry.give_up("docker", "lost", run_id="r")
    assert due(registry) == ["lost", "over"]


def test_forgotten_is_gone(registry: SandboxRegistry):
    registry.keep("local", "a", run_id="r", seconds=-1)
    registry.forget("local", "a")
    assert registry.all() == []
    assert registry._client.keys("m:*") == []


def test_of_a_run(registry: SandboxRegistry):
    registry.keep("local", "a", run_id="r1", seconds=20)
    registry.keep("local", "b", run_id="r2", seconds=10)
    registry.keep("local", "c", run_id="r1", seconds=5)
    assert [kept.sandbox_id for kept in registry.of_run("r1")] == ["c", "a"]


def test_ids_may_hold_slashes(registry: SandboxRegistry):
    registry.keep("local", "a/b", run_id="r", seconds=1)
    assert [(kept.provider, kept.sandbox_id) for kept in registry.all()] == [("local", "a/b")]


def test_due_is_bounded(registry: SandboxRegistry):
    for number in range(60):
        registry.keep("local", f"s{number}", run_id="r", seconds=-1)
    assert len(registry.due()) == 50
    assert len(registry.due(limit=3)) == 3
