import pytest

from tests.rig.waiting import until
from worker.stores.events import DATA_KEYS, MAX_EVENTS, EventStore, allowed
from worker.stores.redis import connect


@pytest.fixture
def store(valkey_url: str) -> EventStore:
    return EventStore(connect(valkey_url), prefix="m", ttl=60)


class TestAllowed:
    @pytest.mark.parametrize(
        ("value", "kept"),
        [
            (1, True),
            (1.5, True),
            (True, True),
            (None, True),
            ("clone_failed: stage=clone; x: y=z", True),
            ("", True),
            ("a" * 512, True),
            ("a" * 513, False),
            ("line\nbreak", False),
            ("ünïcode", False),
            ("quote'", False),
            ("<script>", False),
            ("user@host", False),
            ("$(id)", False),
        ],
    )
    def test_strings_are_of_our_alphabet(self, value, kept):
        assert allowed({"cause": value}) == ({"cause": value} if kept else {})

    def test_unknown_keys_are_left_out(self):
        data = dict.fromkeys(DATA_KEYS, 1) | {"stderr": "x", "token": "x", "env": 1}
        assert set(allowed(data)) == DATA_KEYS

    def test_no_key_could_hold_output_or_secrets(self):
        assert not DATA_KEYS & {"stdout", "stderr", "output", "env", "args", "kwargs", "token", "url", "path", "text"}


class TestStore:
    def test_events_come_back_in_order(self, store: EventStore):
        for number in range(5):
            store.append("r", f"e{number}", {"attempt": number, "stderr": "secret"})
        events = store.read("r")
        assert [(event.name, event.data) for event in events] == [(f"e{n}", {"attempt": n}) for n in range(5)]
        assert [event.seq for event in events] == sorted(event.seq for event in events)
        assert store.read("r", after=events[2].seq) == events[3:]
        assert store.read("other") == []

    def test_follow_yields_what_comes_and_says_when_nothing_does(self, store: EventStore):
        store.append("r", "first", {})
        followed = store.follow("r", block=0.1)
        assert next(followed).name == "first"
        assert next(followed) is None
        store.append("r", "second", {"bytes": 3})
        event = until(lambda: next(followed), seconds=5)
        assert (event.name, event.data) == ("second", {"bytes": 3})

    def test_a_run_is_bounded_in_number_and_time(self, store: EventStore):
        for _ in range(MAX_EVENTS + 500):
            store._client.xadd("m:events:r", {"time": "1", "name": "x", "data": "{}"})
        store.append("r", "last", {})
        assert MAX_EVENTS <= store._client.xlen("m:events:r") < MAX_EVENTS + 200
        assert 50 < store._client.ttl("m:events:r") <= 60

    def test_runs_are_listed_newest_first(self, store: EventStore):
        for run in ("a", "b", "c", "a"):
            store.append(run, "x", {})
        assert [run for run, _ in store.runs()] == ["a", "c", "b"]
        assert [run for run, _ in store.runs(limit=1)] == ["a"]

    def test_old_runs_are_forgotten(self, store: EventStore):
        store._client.zadd("m:runs", {"ancient": 1})
        store.append("a", "x", {})
        assert [run for run, _ in store.runs()] == ["a"]
