"""More jobs than a provider may have at once: the others wait, and no attempt is used for it."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles import github as faults
from tests.rig import hosted
from tests.rig.jobs import Service
from tests.rig.waiting import until

JOBS = 4
LIMIT = 2


@pytest.fixture(params=hosted.NAMES)
def made(request, tmp_path: Path) -> Iterator[Service]:
    limits = f"{request.param}={LIMIT},docker=9"
    with hosted.hosted_service(request.param, tmp_path, PROVIDER_LIMITS=limits, LEASE="5") as made:
        made.provider = request.param
        made.start_worker(concurrency=JOBS)
        yield made


def test_the_limit_holds_and_no_attempt_is_used(made: Service):
    made.hub.fault(_slow, path=r"/acme/job-\d\.git/info/refs", times=None)
    most = Most(made)

    sent = [made.clone(made.public(f"job-{n}"), provider=made.provider, run_id=f"run-{n}") for n in range(JOBS)]
    outcomes = [made.outcome(job, timeout=90) for job in sent]

    assert [(outcome.state, outcome.result.get("attempts")) for outcome in outcomes] == [("SUCCESS", 1)] * JOBS
    assert most.stop() == LIMIT
    assert [made.retries(job.run_id) for job in sent] == [[]] * JOBS


def test_what_a_waiting_job_says(made: Service):
    for number in range(LIMIT):
        made.services.slots.take(made.provider, f"other-{number}")
    sent = made.clone(made.public("waits"), provider=made.provider, run_id="run-waits")

    until(lambda: sent.state == "RETRY", what="it waits")
    payload = sent.result.args[0]

    assert payload["cause"] == "clone_failed: stage=acquire category=resource_exhausted reason=provider_full"
    assert (payload["attempt"], payload["attempts"], payload["retryable"]) == (1, 3, True)
    assert made.double.machines.made == 0
    # Whoever dies with a slot loses it with its lease.
    assert made.outcome(sent).result["attempts"] == 1


def _slow(_: faults.FaultyHandler) -> bool:
    time.sleep(0.7)
    return False


class Most:
    """The most sandboxes that were held at once, as the slots say."""

    def __init__(self, made: Service) -> None:
        self._client, self._key = made.services.client, f"sandferry:slots:{made.provider}"
        self._over = threading.Event()
        self._most = 0
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def stop(self) -> int:
        self._over.set()
        self._thread.join()
        return self._most

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            self._most = max(self._most, self._client.zcard(self._key))
