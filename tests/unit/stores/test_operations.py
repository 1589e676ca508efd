"""The operation record on a real server, against a model of its states."""

import time
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.rig.waiting import until
from worker.failures.cause import Cause
from worker.stores.operations import GOOD, RECOVER, WORKER_LOST, Closed, Opened, OperationStore
from worker.stores.redis import connect

CAUSE = Cause.of("remote_workspace_operation_failed", operation="capture", exit=1)
OTHER = Cause.of("workspace_disk_full", operation="capture")


def make(url: str, lease: float = 60, ttl: float = 600) -> OperationStore:
    return OperationStore(connect(url), prefix="t", lease=lease, record_ttl=ttl)


@pytest.fixture
def store(valkey_url: str) -> OperationStore:
    return make(valkey_url)


def answer(
    store: OperationStore, operation: str = "op", *, run: str = "run", task: str = "task", recovers: str = ""
) -> Opened | Closed:
    return store.begin(
        operation,
        run_id=run,
        task_id=task,
        provider="local",
        sandbox_id="box",
        request={"path": "/w"},
        recovers=recovers,
    )


def begin(store: OperationStore, *operation: str, **more: str) -> int:
    reply = answer(store, *operation, **more)
    assert isinstance(reply, Opened), reply
    return reply.fence


def closed(store: OperationStore, *operation: str, **more: str) -> Closed:
    reply = answer(store, *operation, **more)
    assert isinstance(reply, Closed), reply
    return reply


class TestOneOperation:
    def test_a_running_record(self, store: OperationStore) -> None:
        before = time.time()
        assert begin(store) == 1
        found = store.read("op")
        assert found is not None
        assert (found.operation_id, found.run_id, found.task_id) == ("op", "run", "task")
        assert (found.provider, found.sandbox_id, found.status) == ("local", "box", "running")
        assert (found.attempts, found.cause, found.next_action, found.result) == ((), None, None, None)
        assert before - 1 < found.created <= found.updated < time.time() + 1

    def test_attempts_and_their_causes(self, store: OperationStore) -> None:
        first = begin(store)
        assert store.attempt_failed("op", first, attempt=1, cause=CAUSE, wait=5)
        second = begin(store)
        assert store.finish("op", second, "retry_exhausted", attempt=2, cause=OTHER, next_action=RECOVER)
        found = store.read("op")
        assert found is not None
        assert found.attempts == ((1, str(CAUSE)), (2, str(OTHER)))
        assert found.stderr == f"{CAUSE}\n{OTHER}\n"
        assert found.metadata == {"workspace_sync": {"cause": str(OTHER)}}
        assert (found.status, found.command) == ("retry_exhausted", "sandferry recover run")

    def test_success_is_sticky(self, store: OperationStore) -> None:
        fence = begin(store)
        assert store.finish("op", fence, "succeeded", result={"artifact": "a"})
        assert not store.finish("op", fence, "failed", attempt=1, cause=CAUSE)
        assert not store.finish("op", None, "failed", cause=CAUSE)
        assert not store.attempt_failed("op", fence, attempt=1, cause=CAUSE, wait=0)
        assert not store.renew("op", fence)
        assert closed(store) == Closed(why="done", status="succeeded", result={"artifact": "a"})
        found = store.read("op")
        assert found is not None
        assert (found.status, found.attempts) == ("succeeded", ())

    def test_details_are_in_the_record_only(self, store: OperationStore) -> None:
        store.finish("op", begin(store), "partial", result={"merged": "conflict"}, details={"conflicts": ["a\\n"]})
        found = store.read("op")
        assert found is not None
        assert found.details == {"conflicts": ["a\\n"]}
        assert closed(store).result == {"merged": "conflict"}

    def test_a_body_that_was_replaced_cannot_write(self, store: OperationStore) -> None:
        old, new = begin(store), begin(store)
        assert new > old
        assert not store.finish("op", old, "succeeded")
        assert not store.attempt_failed("op", old, attempt=1, cause=CAUSE, wait=0)
        assert store.finish("op", new, "partial")

    def test_the_answer_that_was_lost(self, store: OperationStore) -> None:
        fence = begin(store)
        for _ in range(2):
            assert store.attempt_failed("op", fence, attempt=1, cause=CAUSE, wait=0)
        again = begin(store)
        for _ in range(2):
            assert store.finish("op", again, "failed", attempt=2, cause=CAUSE)
        found = store.read("op")
        assert found is not None
        assert found.attempts == ((1, str(CAUSE)), (2, str(CAUSE)))

    @pytest.mark.parametrize("whose", [{"run": "other"}, {"task": "other"}])
    def test_an_id_of_somebody_else(self, store: OperationStore, whose: dict[str, str]) -> None:
        begin(store)
        assert closed(store, **whose).why == "foreign"

    def test_it_is_closed_from_outside(self, store: OperationStore) -> None:
        fence = begin(store)
        assert store.finish("op", None, "failed", attempt=1, cause=CAUSE, next_action=RECOVER)
        assert not store.finish("op", fence, "succeeded")
        assert closed(store).status == "failed"

    def test_no_record(self, store: OperationStore) -> None:
        assert store.read("op") is None
        assert not store.finish("op", None, "failed", cause=CAUSE)
        assert not store.renew("op", 1)


class TestSweep:
    def test_records_whose_owner_died_are_closed(self, valkey_url: str) -> None:
        store = make(valkey_url, lease=0.05)
        fence = begin(store)
        swept = until(store.close_lapsed, what="sweep")
        assert [(one.operation_id, one.status, one.command) for one in swept] == [
            ("op", "failed", "sandferry recover run")
        ]
        assert swept[0].attempts == ((0, str(WORKER_LOST)),)
        assert not store.finish("op", fence, "succeeded")
        assert store.close_lapsed() == []

    def test_a_sign_of_life_and_a_planned_wait_keep_it(self, valkey_url: str) -> None:
        short, long = make(valkey_url, lease=0.2), make(valkey_url, lease=60)
        kept, waits, dies = begin(short, "kept"), begin(short, "waits"), begin(short, "dies")
        assert long.renew("kept", kept)
        assert short.attempt_failed("waits", waits, attempt=1, cause=CAUSE, wait=60)
        assert dies == 1
        assert [one.operation_id for one in until(short.close_lapsed, what="sweep")] == ["dies"]
        assert short.close_lapsed() == []

    def test_the_same_task_may_go_on_with_what_was_swept(self, valkey_url: str) -> None:
        store = make(valkey_url, lease=0.05)
        begin(store)
        until(store.close_lapsed, what="sweep")
        assert closed(store, task="other").why == "foreign"
        again = make(valkey_url)
        fence = begin(again)
        assert again.finish("op", fence, "succeeded")
        found = again.read("op")
        assert found is not None
        assert (found.status, found.next_action) == ("succeeded", None)

    def test_it_takes_a_few_at_a_time(self, valkey_url: str) -> None:
        store = make(valkey_url, lease=0)
        for number in range(5):
            begin(store, f"op-{number}", task=f"task-{number}")
        until(lambda: len(store.close_lapsed(2)) == 2, what="sweep")
        assert len(store.close_lapsed(10)) == 3


class TestRecover:
    @pytest.mark.parametrize("status", ["failed", "retry_exhausted", "cancelled"])
    def test_what_failed_is_recovered(self, store: OperationStore, status) -> None:
        store.finish("op", begin(store), status, cause=CAUSE, next_action=RECOVER)
        fence = begin(store, "again", task="other", recovers="op")
        assert store.finish("again", fence, "succeeded")
        old, new = store.read("op"), store.read("again")
        assert old is not None
        assert new is not None
        assert (old.status, old.recovered_by, old.command) == (status, "again", None)
        assert new.recovers == "op"

    def test_a_recovery_that_fails_leaves_the_next_action(self, store: OperationStore) -> None:
        store.finish("op", begin(store), "failed", cause=CAUSE, next_action=RECOVER)
        store.finish(
            "again", begin(store, "again", task="o", recovers="op"), "failed", cause=CAUSE, next_action=RECOVER
        )
        old = store.read("op")
        assert old is not None
        assert old.command == "sandferry recover run"

    def test_a_recovery_of_a_recovery_leaves_nothing_to_do(self, store: OperationStore) -> None:
        store.finish("op", begin(store), "failed", cause=CAUSE, next_action=RECOVER)
        store.finish("two", begin(store, "two", task="b", recovers="op"), "failed", cause=CAUSE, next_action=RECOVER)
        assert store.finish("three", begin(store, "three", task="c", recovers="two"), "partial")
        assert [found and found.command for found in map(store.read, ("op", "two", "three"))] == [None] * 3

    def test_what_is_another_runs_is_not_recovered(self, store: OperationStore) -> None:
        store.finish("op", begin(store), "failed", cause=CAUSE, next_action=RECOVER)
        other = closed(store, "again", run="other", task="o", recovers="op")
        assert other == Closed(why="refused", status="failed")

    @pytest.mark.parametrize("status", ["running", "succeeded", "partial", ""])
    def test_what_has_not_failed_is_not(self, store: OperationStore, status: str) -> None:
        if status:
            fence = begin(store)
            if status != "running":
                store.finish("op", fence, status)  # type: ignore[arg-type]
        assert closed(store, "again", task="o", recovers="op") == Closed(why="refused", status=status)
        assert store.read("again") is None


class TestLists:
    def test_newest_first(self, store: OperationStore) -> None:
        for number in range(3):
            begin(store, f"op-{number}", run=f"run-{number % 2}", task=f"task-{number}")
            time.sleep(0.003)  # the server's clock has milliseconds
        assert [one.operation_id for one in store.newest()] == ["op-2", "op-1", "op-0"]
        assert [one.operation_id for one in store.newest(1)] == ["op-2"]
        assert [one.operation_id for one in store.of_run("run-0")] == ["op-2", "op-0"]
        assert store.of_run("other") == []

    def test_ends_are_kept_for_a_time_and_then_forgotten(self, valkey_url: str) -> None:
        store = make(valkey_url, ttl=0.05)
        store.finish("op", begin(store), "succeeded")
        until(lambda: store.read("op") is None, what="expiry")
        assert store.newest() == []
        until(lambda: connect(valkey_url).keys("t:operations*") == [], what="expiry of the indexes")

    def test_a_running_one_never_expires(self, valkey_url: str) -> None:
        store = make(valkey_url, ttl=60)
        begin(store)
        assert connect(valkey_url).ttl("t:operation:op") == -1


@dataclass
class Model:
    """What a record should be."""

    status: str = "running"
    fence: int = 1
    causes: list[tuple[int, str]] = field(default_factory=list)
    noted: tuple[int, int] | None = None
    swept: bool = False

    def note(self, attempt: int, cause: Cause) -> None:
        if self.noted != (self.fence, attempt):
            self.causes.append((attempt, str(cause)))
            self.noted = (self.fence, attempt)


STATUSES = ("succeeded", "partial", "failed", "retry_exhausted", "cancelled")


def machine(url: str) -> type[RuleBasedStateMachine]:
    class Machine(RuleBasedStateMachine):
        names = Bundle("names")

        @initialize()
        def empty(self) -> None:
            connect(url).flushall()
            self.store, self.dead = make(url), make(url, lease=-1)
            self.models: dict[str, Model] = {}

        @rule(target=names, name=st.sampled_from(["a", "b"]), alive=st.booleans())
        def begin(self, name: str, alive: bool) -> str:
            reply = (self.store if alive else self.dead).begin(
                name, run_id="run", task_id=name, provider="local", sandbox_id="box", request={}
            )
            model = self.models.get(name)
            if model is None:
                self.models[name] = Model()
                assert reply == Opened(1)
            elif model.status == "running" or model.swept:
                model.status, model.fence, model.swept = "running", model.fence + 1, False
                assert reply == Opened(model.fence)
            else:
                assert isinstance(reply, Closed)
                assert (reply.why, reply.status) == ("done", model.status)
            self.alive = {**getattr(self, "alive", {}), name: alive} if isinstance(reply, Opened) else self.alive
            return name

        @rule(name=names, back=st.integers(0, 2), attempt=st.integers(1, 3))
        def attempt_failed(self, name: str, back: int, attempt: int) -> None:
            model = self.models[name]
            ours = back == 0 and model.status == "running"
            assert self.store.attempt_failed(name, model.fence - back, attempt=attempt, cause=CAUSE, wait=9) is ours
            if ours:
                model.note(attempt, CAUSE)
                self.alive[name] = True

        @rule(name=names, back=st.integers(0, 2), status=st.sampled_from(STATUSES), attempt=st.integers(1, 3))
        def finish(self, name: str, back: int, status, attempt: int) -> None:
            model = self.models[name]
            answer = self.store.finish(name, model.fence - back, status, attempt=attempt, cause=OTHER)
            if back == 0 and model.status == "running":
                assert answer
                model.note(attempt, OTHER)
                model.status = status
            else:
                assert answer is (back == 0 and model.status == status)

        @rule(name=names, status=st.sampled_from(STATUSES))
        def close(self, name: str, status) -> None:
            model = self.models[name]
            answer = self.store.finish(name, None, status, attempt=9, cause=OTHER)
            assert answer is (model.status == "running")
            if answer:
                model.note(9, OTHER)
                model.status, model.fence = status, model.fence + 1

        @rule()
        def sweep(self) -> None:
            lapsed = {n for n, model in self.models.items() if model.status == "running" and not self.alive[n]}
            assert {one.operation_id for one in self.store.close_lapsed()} == lapsed
            for name in lapsed:
                model = self.models[name]
                model.status, model.fence, model.swept = "failed", model.fence + 1, True
                model.causes.append((0, str(WORKER_LOST)))

        @invariant()
        def the_records_are_as_the_model(self) -> None:
            for name, model in getattr(self, "models", {}).items():
                found = self.store.read(name)
                assert found is not None
                assert (found.status, found.attempts) == (model.status, tuple(model.causes))
                assert found.cause == (model.causes[-1][1] if model.causes else None)
                assert model.status not in GOOD or found.next_action is None

    return Machine


def test_every_order_of_events(valkey_url: str) -> None:
    run_state_machine_as_test(
        machine(valkey_url),
        settings=settings(
            max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
