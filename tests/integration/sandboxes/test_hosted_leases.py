"""Leases of hosted providers, a minute lasting a second: kept for a turn longer than they are, never shortened."""

import time

import pytest

from tests.integration.sandboxes.helpers import soon, wait_for
from tests.rig import hosted
from worker.failures.model import OperationFailed
from worker.retrying.ticker import Ticker
from worker.sandboxes.base import Spec
from worker.sandboxes.registry import Registry

LEASE = 5.0
TURN = 7.0
"""Seven minutes against five, as agents have them (7 m 14 s against E2B's default of 5 minutes)."""


@pytest.fixture
def scaled(hosted_name, tmp_path, monkeypatch):
    """A double, and a provider whose minutes last a second."""
    monkeypatch.setattr("worker.sandboxes.daytona.cloud.MINUTE", 1.0)
    options = {"minute": 1.0} if hosted_name == "daytona" else {"connect_resets": True}
    with hosted.double(hosted_name, tmp_path, **options) as double:
        yield double, Registry(hosted.provider_settings(hosted_name, double)).get(hosted_name)


def test_a_turn_longer_than_the_lease(scaled, labels):
    double, provider = scaled
    sandbox = provider.create(Spec(ttl=LEASE), labels, deadline=soon())
    with Ticker("test").every(LEASE / 3, lambda: sandbox.keep_alive(LEASE, deadline=soon())):
        done = sandbox.run(["sh", "-c", f"sleep {TURN}; echo done"], deadline=soon())
    assert done.stdout == b"done\n"
    sandbox.keep_alive(2, deadline=soon())  # what a job leaves between turns
    assert provider.connect(sandbox.id, labels, deadline=soon()).run(["true"], deadline=soon()).ok
    wait_for(lambda: double.machines.living() == [], LEASE + 3)
    with pytest.raises(OperationFailed) as failed:
        provider.connect(sandbox.id, labels, deadline=soon())
    assert failed.value.failure.reason == "sandbox_lost"


def test_without_it_the_turn_is_lost(scaled, labels):
    _, provider = scaled
    sandbox = provider.create(Spec(ttl=2), labels, deadline=soon())
    with pytest.raises(OperationFailed) as failed:
        sandbox.run(["sleep", str(TURN)], deadline=soon())
    assert failed.value.failure.reason == "sandbox_lost"


def test_connecting_shortens_nothing(scaled, labels):
    double, provider = scaled
    sandbox = provider.create(Spec(ttl=60), labels, deadline=soon())
    sandbox.keep_alive(5000, deadline=soon())
    before = sandbox.lease_until(deadline=soon())
    again = Registry(hosted.provider_settings(provider.name, double)).get(provider.name)
    again.connect(sandbox.id, labels, deadline=soon()).run(["true"], deadline=soon())
    assert sandbox.lease_until(deadline=soon()) >= before - 0.5
    assert before == pytest.approx(time.time() + 5000, abs=30)


def test_a_plan_that_allows_less(tmp_path, labels):
    with hosted.double("e2b", tmp_path) as double:
        provider = Registry(hosted.provider_settings("e2b", double, lease_max=3600)).get("e2b")
        sandbox = provider.create(Spec(ttl=86_400), labels, deadline=soon())
        sandbox.keep_alive(86_400, deadline=soon())
        assert sandbox.lease_until(deadline=soon()) == pytest.approx(time.time() + 3600, abs=30)
