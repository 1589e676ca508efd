import threading
import time

import pytest

from worker.stores.redis import connect
from worker.stores.sandboxes import FIRST_WAIT, LONGEST_WAIT, Noted, SandboxRegistry


@pytest.fixture
def registry(valkey_url: str) -> SandboxRegistry:
    return SandboxRegistry(connect(valkey_url), prefix="m")


def claimed(registry: SandboxRegistry) -> list[str]:
    """What the reaper is handed, one by one."""
    return [kept.sandbox_id for kept in iter(registry.claim, None)]


def make_due(registry: SandboxRegistry, sandbox_id: str) -> None:
    """As if the time of its put-off had passed."""
    registry._client.zadd("m:sandboxes", {f"local/{sandbox_id}": 1})


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
    assert [registry.holds("local", "s", task_id=task) for task in "ab"] == [False, True]
    assert claimed(registry) == []
    registry.let_go("local", "s", run_id="r", task_id="b")
    assert claimed(registry) == ["s"]


def test_handed_out_is_what_was_given_up_or_whose_time_is_over(registry: SandboxRegistry):
    registry.keep("local", "kept", run_id="r", seconds=1000)
    registry.keep("local", "over", run_id="r", seconds=-1)
    registry.hold("docker", "lost", run_id="r", task_id="t", seconds=500)
    assert registry.give_up("docker", "lost", run_id="r") == "noted"
    assert claimed(registry) == ["lost", "over"]


def test_what_is_claimed_or_given_up_is_nobodys_any_more(registry: SandboxRegistry):
    registry.keep("local", "claimed", run_id="r", seconds=-1)
    assert registry.claim() is not None
    registry.give_up("local", "given", run_id="r")
    before = registry.all()
    for sandbox_id in ("claimed", "given"):
        assert registry.hold("local", sandbox_id, run_id="r", task_id="t", seconds=500) is Noted.DOOMED
        assert registry.keep("local", sandbox_id, run_id="r", seconds=500) is Noted.DOOMED
        registry.let_go("local", sandbox_id, run_id="r", task_id="t")
        assert not registry.holds("local", sandbox_id, task_id="t")
    assert registry.all() == before


def test_what_was_extended_in_time_is_not_claimed(registry: SandboxRegistry):
    registry.keep("local", "s", run_id="r", seconds=-1)
    assert registry.keep("local", "s", run_id="r", seconds=500) is Noted.NOTED
    assert registry.claim() is None


def test_extending_and_claiming_exclude_each_other(registry: SandboxRegistry, valkey_url: str):
    """Whoever comes first: a sandbox is extended, or it is claimed, and never both."""
    other = SandboxRegistry(connect(valkey_url), prefix="m")
    for number in range(50):
        registry.keep("local", f"s{number}", run_id="r", seconds=-1)
    taken: list[str] = []
    reaper = threading.Thread(target=lambda: taken.extend(claimed(other)))
    reaper.start()
    kept = [
        f"s{number}"
        for number in reversed(range(50))
        if registry.keep("local", f"s{number}", run_id="r", seconds=500) is Noted.NOTED
    ]
    reaper.join()
    assert sorted(taken + kept) == sorted(f"s{number}" for number in range(50))


def test_another_run_can_do_nothing(registry: SandboxRegistry):
    registry.keep("local", "s", run_id="r", seconds=100)
    before = registry.all()
    assert registry.hold("local", "s", run_id="x", task_id="t", seconds=500) is Noted.FOREIGN
    assert registry.keep("local", "s", run_id="x", seconds=500) is Noted.FOREIGN
    assert registry.give_up("local", "s", run_id="x") is Noted.FOREIGN
    assert registry.all() == before


def test_what_cannot_be_ended_is_put_off_longer_every_time(registry: SandboxRegistry):
    registry.keep("local", "s", run_id="r", seconds=-1)
    waits = []
    for _ in range(9):
        claim = registry.claim()
        assert claim is not None
        waits.append(registry.all()[0].due - time.time())
        assert registry.claim() is None
        make_due(registry, "s")
    wanted = [min(FIRST_WAIT * 2**times, LONGEST_WAIT) for times in range(9)]
    assert waits == pytest.approx(wanted, abs=5)
    assert wanted[-1] == LONGEST_WAIT


def test_fifty_that_cannot_be_ended_leave_the_next_one_its_turn(registry: SandboxRegistry):
    for number in range(50):
        registry.keep("local", f"s{number:02}", run_id="r", seconds=-100)
    registry.keep("local", "last", run_id="r", seconds=-1)
    assert claimed(registry)[-1] == "last"
    assert registry.claim() is None


def test_one_reaper_at_a_time(registry: SandboxRegistry):
    with registry.reaping(30) as first, registry.reaping(30) as second:
        assert (first, second) == (True, False)
    with registry.reaping(30) as third:
        assert third


def test_a_dead_reaper_is_no_obstacle_and_a_late_one_frees_only_its_own(registry: SandboxRegistry):
    with registry.reaping(0.05) as late:
        assert late
        end = time.monotonic() + 5
        while registry._client.exists("m:reaping") and time.monotonic() < end:
            time.sleep(0.01)
        with registry.reaping(30) as ours:
            assert ours
            late_token, ours_token = "x", registry._client.get("m:reaping")
            registry._scripts["unlock"](keys=["m:reaping"], args=[late_token])
            assert registry._client.get("m:reaping") == ours_token


def test_forgotten_is_gone(registry: SandboxRegistry):
    registry.keep("local", "a", run_id="r", seconds=-1)
    registry.claim()
    registry.forget("local", "a")
    assert registry.all() == []
    assert registry._client.keys("m:*") == []


def test_letting_go_of_an_unknown_one_notes_nothing(registry: SandboxRegistry):
    registry.let_go("local", "a", run_id="r", task_id="t")
    assert registry._client.keys("m:*") == []


def test_of_a_run(registry: SandboxRegistry):
    registry.keep("local", "a", run_id="r1", seconds=20)
    registry.keep("local", "b", run_id="r2", seconds=10)
    registry.keep("local", "c", run_id="r1", seconds=5)
    assert [kept.sandbox_id for kept in registry.of_run("r1")] == ["c", "a"]


def test_ids_may_hold_slashes(registry: SandboxRegistry):
    registry.keep("local", "a/b", run_id="r", seconds=-1)
    claim = registry.claim()
    assert claim is not None
    assert (claim.provider, claim.sandbox_id, claim.run_id) == ("local", "a/b", "r")
