import gc
import os
import threading
import time
import weakref

import pytest

from tests.rig.waiting import until
from worker.retrying.ticker import Ticker


def threads(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == f"sandferry-{name}"]


def test_calls_at_its_pace_and_stops():
    ticker, times = Ticker("pace"), []
    begun = time.monotonic()
    with ticker.every(0.1, lambda: times.append(time.monotonic() - begun)):
        until(lambda: len(times) >= 3, seconds=5)
    count = len(times)
    assert all(moment >= 0.1 * (number + 1) - 0.01 for number, moment in enumerate(times))
    other = []
    with ticker.every(0.05, lambda: other.append(1)):
        until(lambda: len(other) >= 5, seconds=5)
    assert len(times) == count


def test_a_sooner_call_wakes_the_thread_and_none_is_starved():
    ticker, seen = Ticker("order"), []
    with ticker.every(60, lambda: seen.append("late")), ticker.every(0.05, lambda: seen.append("a")):
        until(lambda: seen.count("a") >= 2, seconds=5)
        with ticker.every(0.05, lambda: seen.append("b")):
            until(lambda: seen.count("b") >= 3 and seen.count("a") >= 5, seconds=5)
    assert "late" not in seen


def test_one_thread_serves_all_and_is_a_daemon():
    ticker = Ticker("single")
    assert threads("single") == []
    with ticker.every(1, print), ticker.every(1, print):
        (thread,) = threads("single")
        assert thread.daemon
    with ticker.every(1, print):
        assert threads("single") == [thread]


def test_what_a_call_raises_ends_neither_it_nor_the_others(caplog: pytest.LogCaptureFixture):
    ticker, good, bad = Ticker("raises"), [], []

    def fails() -> None:
        bad.append(1)
        raise OSError("cnry-text")

    with ticker.every(0.05, fails), ticker.every(0.05, lambda: good.append(1)):
        until(lambda: len(good) >= 3 and len(bad) >= 3, seconds=5)
    assert {record.message for record in caplog.records} == {"tick failed"}
    assert {record.exception for record in caplog.records} == {"OSError"}
    assert "cnry" not in caplog.text


def test_the_block_may_raise():
    ticker, seen = Ticker("block"), []
    with pytest.raises(KeyError), ticker.every(0.05, lambda: seen.append(1)):
        raise KeyError
    assert ticker._paces == {}


def test_nothing_of_a_body_that_is_over_is_kept():
    class Body:
        def call(self) -> None:
            """Nothing."""

    ticker, body = Ticker("kept"), Body()
    with ticker.every(600, body.call):
        pass
    gone = weakref.ref(body)
    del body
    gc.collect()
    assert gone() is None


def test_a_long_sleep_is_cut_by_a_newcomer_after_an_idle_time():
    ticker, seen = Ticker("idle"), []
    with ticker.every(0.05, lambda: None):
        pass
    until(lambda: ticker._asleep_until == float("inf"), seconds=5, what="idle")
    with ticker.every(0.05, lambda: seen.append(1)):
        until(lambda: seen, seconds=5)


def test_a_fork_starts_anew():
    ticker, seen = Ticker("fork"), []
    with ticker.every(0.05, lambda: seen.append(os.getpid())):
        until(lambda: seen, seconds=5)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            # Only this thread lives here: neither its pace nor a held lock may come along.
            status = 1
            try:
                inside: list[int] = []
                inherited = len(ticker._paces)
                with ticker.every(0.05, lambda: inside.append(os.getpid())):
                    until(lambda: inside, seconds=5)
                os.write(writer, f"{inherited} {set(inside) == {os.getpid()}}".encode())
                status = 0
            finally:
                os._exit(status)
        os.close(writer)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert os.read(reader, 100) == b"0 True"
        os.close(reader)
        count = len(seen)
        until(lambda: len(seen) > count, seconds=5, what="the parent's goes on")
