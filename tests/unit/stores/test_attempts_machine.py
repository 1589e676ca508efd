"""The attempt record against a model, on the real scripts.

The model's promises: at most one live owner; the attempt never decreases; a terminal outcome never changes;
the fence strictly grows with every body; deaths count bodies that ended without a word of theirs or their worker's.
"""

import json

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from worker.stores.attempts import TERMINAL, AttemptStore, Begun, Turned
from worker.stores.redis import connect

TASK = "t-1"
RUN = "run"


class Machine(RuleBasedStateMachine):
    url: str

    @initialize()
    def clean(self) -> None:
        self.client = connect(self.url)
        self.client.flushdb()
        self.store = AttemptStore(self.client, prefix="m", lease=600, record_ttl=3600)
        self.state, self.attempt, self.fence, self.deaths = "", 0, 0, 0
        self.owner: str | None = None
        self.lapsed = False
        self.handed_on = False
        self.due = False  # for the sweep: lapsed, and not put off yet
        self.cancelled = False
        self.outcome: object = None
        self.bodies: list[tuple[str, int, int]] = []
        self.deliveries = 0
        self.history: list[str] = []
        self.carry = ""

    def _begin(self, attempt: int, delivery: str, carry: str) -> Begun | Turned:
        return self.store.begin(
            TASK, attempt=attempt, owner=f"w/{delivery}", envelope="{}", run_id=RUN, delivery=delivery, carry=carry
        )

    @rule(ahead=st.integers(-2, 2), carry=st.sampled_from(["", "sealed"]))
    def a_message_comes(self, ahead: int, carry: str) -> None:
        attempt = max(1, self.attempt + ahead)
        self.deliveries += 1
        delivery = f"d{self.deliveries}"
        reply = self._begin(attempt, delivery, carry)
        if self.state in TERMINAL:
            assert reply == Turned(why="done", state=self.state, payload=self.outcome)
        elif attempt < self.attempt:
            assert isinstance(reply, Turned)
            assert (reply.why, reply.state) == ("stale", self.state)
        elif self.state == "running" and not self.lapsed:
            assert reply == Turned(why="busy", state="running", payload=None)
        else:
            assert isinstance(reply, Begun)
            self.deaths += self.state == "running" and not self.handed_on
            assert reply.fence > self.fence
            assert (reply.deaths, reply.cancelled) == (self.deaths, self.cancelled)
            self.carry = carry or self.carry
            assert reply.carry == self.carry
            self.state, self.attempt, self.fence, self.lapsed = "running", attempt, reply.fence, False
            self.due = self.handed_on = False
            self.owner = delivery
            self.bodies.append((delivery, attempt, reply.fence))

    @precondition(lambda self: self.owner is not None and self.state == "running")
    @rule()
    def the_owner_asks_again(self) -> None:
        """Its first answer was lost: it is told to run, and nobody died."""
        assert self.owner is not None
        reply = self._begin(self.attempt, self.owner, "")
        assert isinstance(reply, Begun)
        assert reply.fence > self.fence
        assert reply.deaths == self.deaths
        self.fence, self.lapsed, self.due, self.handed_on = reply.fence, False, False, False
        self.bodies.append((self.owner, self.attempt, reply.fence))

    @precondition(lambda self: self.bodies)
    @rule(data=st.data(), state=st.sampled_from(["succeeded", "failed", "cancelled", "waiting"]))
    def a_body_ends(self, data: st.DataObject, state: str) -> None:
        """Any body that ever began, the owner or a ghost."""
        _, attempt, fence = data.draw(st.sampled_from(self.bodies))
        ours = self.state == "running" and fence == self.fence
        again = fence == self.fence and self.state == state
        payload = {"fence": fence, "state": state}
        if state == "waiting":
            kept = self.store.end_waiting(
                TASK, attempt=attempt, fence=fence, payload=payload, cause="clone_failed", countdown=5, spent=1,
                carry="left",
            )  # fmt: skip
        else:
            kept = self.store.end_terminal(
                TASK, attempt=attempt, fence=fence, state=state, payload=payload, cause="clone_failed", spent=1
            )
        assert kept == (ours or again)
        if ours:
            self.history.append(f"{self.attempt} clone_failed")
            self.state, self.outcome, self.owner, self.deaths, self.due = state, payload, None, 0, False
            self.attempt += state == "waiting"
            self.carry = "left" if state == "waiting" else ""

    @precondition(lambda self: self.bodies)
    @rule(data=st.data())
    def a_body_gives_a_sign_of_life(self, data: st.DataObject) -> None:
        _, _, fence = data.draw(st.sampled_from(self.bodies))
        ours = self.state == "running" and fence == self.fence
        replied, cancelled = self.store.renew(TASK, fence=fence, run_id=RUN)
        assert replied == ours
        if ours:
            assert cancelled == self.cancelled
            self.lapsed = self.due = False

    @precondition(lambda self: self.state == "running")
    @rule()
    def the_lease_lapses(self) -> None:
        self.client.hset(f"m:attempt:{TASK}", "lease_until", 1)
        self.client.zadd("m:leases", {TASK: 1})
        self.lapsed = self.due = True

    @rule(right=st.booleans(), handed_on=st.booleans())
    def a_process_ends(self, right: bool, handed_on: bool) -> None:
        """It died, or was ended because its worker was told to end; of that one both may be said, in any order."""
        owner = f"w/{self.owner}" if right else "w/other"
        freed = self.store.disown(TASK, owner=owner, handed_on=handed_on)
        assert freed == (self.state == "running" and right)
        if freed:
            self.lapsed = self.due = True
            self.handed_on = self.handed_on or handed_on
            self.fence += 1

    @rule(state=st.sampled_from(["failed", "cancelled"]))
    def it_is_closed_from_outside(self, state: str) -> None:
        payload = {"closed": state}
        closed = self.store.close(TASK, state=state, payload=payload, cause="expired")
        assert closed == (self.state not in TERMINAL)
        if closed and self.state:
            self.history.append(f"{self.attempt} expired")
            self.state, self.outcome, self.owner, self.due = state, payload, None, False
            self.fence += 1

    @rule()
    def the_run_is_cancelled(self) -> None:
        self.store.cancel(RUN)
        self.cancelled = True

    @rule()
    def a_sweep_looks(self) -> None:
        taken = self.store.lapsed(10)
        assert [record.task_id for record in taken] == ([TASK] if self.due else [])
        self.due = False
        # At once again: it was put off.
        assert self.store.lapsed(10) == []

    @invariant()
    def the_record_agrees(self) -> None:
        record = self.store.read(TASK)
        if not self.state:
            assert record is None
            return
        assert record is not None
        assert (record.state, record.attempt) == (self.state, self.attempt)
        assert list(record.history) == self.history
        fence = int(self.client.hget(f"m:attempt:{TASK}", "fence"))
        assert fence == self.fence
        if self.state in TERMINAL:
            assert record.payload == self.outcome

    def teardown(self) -> None:
        if hasattr(self, "client"):
            self.client.close()


def test_the_record_keeps_its_promises(valkey_url: str):
    Machine.url = valkey_url
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=120, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


@pytest.fixture
def store(valkey_url: str) -> AttemptStore:
    return AttemptStore(connect(valkey_url), prefix="m", lease=30, record_ttl=3600)


def begin(store: AttemptStore, **given) -> Begun | Turned:
    fixed = {"attempt": 1, "owner": "w/1", "envelope": "{}", "run_id": RUN, "delivery": "d"}
    return store.begin(TASK, **{**fixed, **given})


class TestTime:
    def test_a_retry_knows_how_long_it_waited_past_its_time(self, store: AttemptStore):
        begun = begin(store)
        assert (begun.waited, begun.spent, begun.deaths) == (0, 0, 0)
        store.end_waiting(TASK, attempt=1, fence=begun.fence, payload={}, cause="", countdown=-7, spent=1.25, carry="c")
        second = begin(store, attempt=2, delivery="e")
        assert 7 <= second.waited < 8
        assert (second.spent, second.carry, second.first_seen) == (1.25, "c", begun.first_seen)

    def test_a_dead_body_is_known_to_have_worked_until_its_last_sign(self, store: AttemptStore):
        begun = begin(store)
        key = f"m:attempt:{TASK}"
        now = int(begun.now * 1000)
        store._client.hset(key, mapping={"started_at": now - 9000, "seen_at": now - 2000, "lease_until": now - 1})
        second = begin(store, delivery="e")
        assert (second.spent, second.deaths) == (7.0, 1)

    def test_due_times_back_off_from_the_grace_to_an_hour(self, store: AttemptStore, monkeypatch):
        begin(store)
        store.disown(TASK, owner="w/1")
        waits = []
        for _ in range(10):
            store._client.zadd("m:leases", {TASK: 1})
            (record,) = store.lapsed(5)
            now = store._client.time()
            waits.append(round(store._client.zscore("m:leases", TASK) / 1000 - now[0] - now[1] / 1e6))
        assert waits == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
        assert record.republished == 10

    def test_a_begun_body_starts_the_backing_off_anew(self, store: AttemptStore):
        begin(store)
        store.disown(TASK, owner="w/1")
        store.lapsed(5)
        begin(store, delivery="e")
        record = store.read(TASK)
        assert record is not None
        assert record.republished == 0

    def test_records_outlive_their_last_change_by_their_ttl(self, store: AttemptStore):
        begun = begin(store)
        assert 3_590_000 < store._client.pttl(f"m:attempt:{TASK}") <= 3_600_000
        store._client.pexpire(f"m:attempt:{TASK}", 1000)
        store.end_terminal(TASK, attempt=1, fence=begun.fence, state="failed", payload={}, cause="", spent=0)
        assert 3_590_000 < store._client.pttl(f"m:attempt:{TASK}") <= 3_600_000


class TestDeaths:
    @pytest.mark.parametrize(
        ("ends", "deaths"),
        [
            (["dies", "dies", "dies"], 3),
            (["handed on", "handed on", "handed on"], 0),
            (["dies", "handed on", "dies"], 2),
            (["lapses", "handed on", "lapses"], 2),
            (["handed on, then seen dead", "dies"], 1),
            (["seen dead, then handed on", "lapses"], 1),
        ],
    )
    def test_what_its_worker_hands_on_did_not_die(self, store: AttemptStore, ends: list[str], deaths: int):
        begin(store)
        for number, end in enumerate(ends):
            if end == "lapses":
                store._client.hset(f"m:attempt:{TASK}", "lease_until", 1)
            for word in end.split(", then ") if end != "lapses" else ():
                assert store.disown(TASK, owner="w/1", handed_on=word == "handed on") is True
            begun = begin(store, delivery=f"e{number}")
        assert begun.deaths == deaths

    def test_the_time_of_what_is_handed_on_counts(self, store: AttemptStore):
        begun = begin(store)
        store._client.hset(f"m:attempt:{TASK}", "started_at", int(begun.now * 1000) - 9000)
        store.disown(TASK, owner="w/1", handed_on=True)
        second = begin(store, delivery="e")
        assert 9.0 <= second.spent < 10.0
        assert second.deaths == 0


class TestLostRecord:
    def test_a_body_goes_on_and_its_outcome_stands(self, store: AttemptStore):
        begun = begin(store, attempt=2)
        store._client.delete(f"m:attempt:{TASK}")
        assert store.renew(TASK, fence=begun.fence, run_id=RUN) == (True, False)
        assert store.read(TASK) is None
        assert store.end_waiting(
            TASK, attempt=2, fence=begun.fence, payload={"a": 1}, cause="clone_failed", countdown=1, spent=3, carry="c"
        )
        record = store.read(TASK)
        assert record is not None
        assert (record.state, record.attempt, record.carry) == ("waiting", 3, "c")
        assert record.history == ("2 clone_failed",)

    def test_the_index_forgets_it(self, store: AttemptStore):
        begin(store)
        store.disown(TASK, owner="w/1")
        store._client.delete(f"m:attempt:{TASK}")
        assert store.lapsed(5) == []
        assert store._client.zcard("m:leases") == 0

    def test_closing_nothing_contradicts_nothing(self, store: AttemptStore):
        assert store.close(TASK, state="failed", payload={}, cause="expired") is True
        assert store.read(TASK) is None


def test_confirm_forgets_the_message_and_keeps_the_outcome(store: AttemptStore):
    begun = begin(store, envelope=json.dumps({"task": "t"}), carry="sealed")
    store.end_terminal(TASK, attempt=1, fence=begun.fence, state="succeeded", payload={"a": 1}, cause="", spent=0)
    store.confirm(TASK)
    record = store.read(TASK)
    assert record is not None
    assert (record.envelope, record.carry, record.payload, record.state) == (None, "", {"a": 1}, "succeeded")
    assert store._client.zcard("m:leases") == 0
    assert begin(store, delivery="late") == Turned(why="done", state="succeeded", payload={"a": 1})


def test_all_reads_every_record(store: AttemptStore):
    for number in range(3):
        store.begin(f"t-{number}", attempt=1, owner="w", envelope="{}", run_id=RUN, delivery=str(number))
    assert sorted(record.task_id for record in store.all()) == ["t-0", "t-1", "t-2"]
