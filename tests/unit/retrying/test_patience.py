import time

import pytest
import redis

from worker.retrying import patience
from worker.retrying.patience import patient
from worker.stores.redis import StoreError, is_outage


@pytest.fixture(autouse=True)
def short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PAUSE", 0.01)


def failing(times: int):
    calls = []

    def call() -> int:
        calls.append(1)
        if len(calls) <= times:
            raise StoreError(f"away {len(calls)}")
        return len(calls)

    return call, calls


def test_the_first_answer_is_returned_without_a_pause(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("slept"))
    assert patient(failing(0)[0]) == 1


def test_asks_until_it_is_answered():
    assert patient(failing(5)[0]) == 6


def test_gives_up_with_the_last_error():
    call, calls = failing(10_000)
    begun = time.monotonic()
    with pytest.raises(StoreError) as caught:
        patient(call, patience=0.1)
    assert 0.1 <= time.monotonic() - begun < 2
    assert str(caught.value) == f"away {len(calls)}"


def test_other_errors_are_not_waited_out():
    def call() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        patient(call)


@pytest.mark.parametrize(
    ("exc", "passes"),
    [
        (redis.ConnectionError("refused"), True),
        (redis.TimeoutError(), True),
        (redis.BusyLoadingError("loading"), True),
        (redis.exceptions.ReadOnlyError("a replica now"), True),
        (redis.exceptions.OutOfMemoryError("full"), True),
        (redis.exceptions.ClusterDownError("CLUSTERDOWN"), True),
        (redis.ResponseError("MISCONF errors writing to disk"), True),
        (redis.ResponseError("NOREPLICAS not enough"), True),
        (redis.ResponseError("WRONGTYPE operation against a key"), False),
        (redis.ResponseError("ERR Error running script"), False),
        (redis.exceptions.NoPermissionError("NOPERM"), False),
        (redis.DataError("invalid input"), False),
        (OSError("not the store's"), False),
    ],
)
def test_only_an_outage_is_waited_out(exc: Exception, passes: bool):
    assert is_outage(exc) is passes
    calls = []

    def call() -> None:
        calls.append(1)
        raise exc

    with pytest.raises(type(exc)):
        patient(call, patience=0.05)
    assert (len(calls) > 1) is passes
