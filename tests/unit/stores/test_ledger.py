"""The ledger: what it vouches for, and that only one sandbox is given one generation of a call."""

import time

import pytest

from worker.stores.ledger import Call, Conflict, Ledger
from worker.stores.redis import connect

TTL = 3600.0


@pytest.fixture
def ledger(valkey_url) -> Ledger:
    made = Ledger(connect(valkey_url), prefix="t", ttl=TTL)
    made.born()
    return made


def call(**changes) -> Call:
    fields = {"run_id": "r", "dispatch_id": "d", "fingerprint": "f", "issued_at": time.time() + 1}
    return Call(**(fields | changes))


def test_it_is_born_once(ledger: Ledger):
    first = ledger.born()
    assert abs(first - time.time()) < 5
    assert ledger.born() == first


def test_a_young_call_is_new_then_present(ledger: Ledger):
    first = ledger.open(call())
    again = ledger.open(call())

    assert (first.vouched, first.stage, first.generation, first.sent) == ("absent_new", "open", 1, False)
    assert (again.vouched, again.nonce) == ("present", first.nonce)
    assert len(first.nonce) == 32


@pytest.mark.parametrize("age", [None, 1000.0, 1e9])
def test_an_older_call_is_not_vouched_for_and_stays_so(ledger: Ledger, age):
    issued_at = None if age is None else time.time() - age
    for _ in range(2):
        assert ledger.open(call(issued_at=issued_at)).vouched == "absent_unvouched"


def test_a_ledger_that_was_lost_vouches_for_nothing_older(ledger: Ledger, valkey_url):
    issued = call(issued_at=time.time())
    assert ledger.open(issued).vouched == "absent_new"
    connect(valkey_url).flushall()
    time.sleep(0.01)
    assert ledger.open(issued).vouched == "absent_unvouched"


def test_what_it_forgets_it_does_not_vouch_for(valkey_url):
    ledger = Ledger(connect(valkey_url), prefix="t", ttl=0.05)
    connect(valkey_url).set("t:ledger-born", 1)
    issued = call(issued_at=time.time())
    assert ledger.open(issued).vouched == "absent_new"
    deadline = time.monotonic() + 5
    while connect(valkey_url).exists("t:dispatch:r/d") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ledger.open(issued).vouched == "absent_unvouched"


def test_another_call_under_the_id_is_a_conflict(ledger: Ledger):
    ledger.open(call())
    with pytest.raises(Conflict):
        ledger.open(call(fingerprint="other"))
    assert ledger.open(call(run_id="other", fingerprint="other")).vouched == "absent_new"


def test_a_generation_goes_to_one_sandbox(ledger: Ledger):
    entry = ledger.open(call())
    assert ledger.send(call(), entry, provider="local", sandbox_id="a")
    assert ledger.send(call(), entry, provider="local", sandbox_id="a")
    assert not ledger.send(call(), entry, provider="local", sandbox_id="b")
    assert not ledger.send(call(), entry, provider="docker", sandbox_id="a")

    sent = ledger.open(call())
    assert (sent.sent, sent.provider, sent.sandbox_id, sent.vouched) == (True, "local", "a", "present")


def test_a_sent_call_is_present_even_if_it_was_not_vouched_for(ledger: Ledger):
    entry = ledger.open(call(issued_at=1.0))
    assert ledger.send(call(), entry, provider="local", sandbox_id="a")
    assert ledger.open(call(issued_at=1.0)).vouched == "present"


def test_a_step_that_comes_late_changes_nothing(ledger: Ledger):
    entry = ledger.open(call())
    ledger.note(call(), "stage")
    assert ledger.open(call()).stage == "stage"
    ledger.send(call(), entry, provider="local", sandbox_id="a")
    ledger.note(call(), "bootstrap")
    assert ledger.open(call()).stage == "dispatch"


def test_the_next_generation_begins_once(ledger: Ledger):
    entry = ledger.open(call())
    ledger.send(call(), entry, provider="local", sandbox_id="a")
    following = ledger.again(call(), entry)

    assert (following.generation, following.sent) == (2, False)
    assert ledger.again(call(), entry) is None
    assert not ledger.send(call(), entry, provider="local", sandbox_id="a")
    read = ledger.open(call())
    assert (read.generation, read.sent, read.sandbox_id, read.vouched) == (2, False, "", "present")
    assert ledger.send(call(), following, provider="local", sandbox_id="b")


def test_a_result_is_kept_and_final(ledger: Ledger):
    entry = ledger.open(call())
    ledger.send(call(), entry, provider="local", sandbox_id="a")
    ledger.finish(call(), entry, {"output": [1]})

    done = ledger.open(call())
    assert (done.stage, done.result) == ("done", {"output": [1]})
    assert not ledger.send(call(), entry, provider="local", sandbox_id="a")
    assert ledger.again(call(), entry) is None


def test_a_send_after_the_loss_writes_the_entry_anew(ledger: Ledger, valkey_url):
    entry = ledger.open(call())
    connect(valkey_url).flushall()
    assert ledger.send(call(), entry, provider="local", sandbox_id="a")
    assert ledger.open(call()).sandbox_id == "a"
    assert ledger.again(call(), ledger.open(call())) is not None


def test_entries_end(ledger: Ledger, valkey_url):
    entry = ledger.open(call())
    ledger.send(call(), entry, provider="local", sandbox_id="a")
    ledger.finish(call(), entry, {})
    assert 0 < connect(valkey_url).pttl("t:dispatch:r/d") <= TTL * 1000
