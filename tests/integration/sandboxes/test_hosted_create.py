"""Create on a hosted provider, when answers are lost: one sandbox, and none left behind."""

import random
import threading

import pytest

from tests.doubles import hosted_faults as faults
from tests.integration.sandboxes.helpers import soon, wait_for
from tests.rig import hosted
from worker.failures.classify import classify
from worker.failures.model import Category, InvalidRequest
from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN, Spec
from worker.sandboxes.hosted import creation
from worker.sandboxes.hosted.creation import Creation
from worker.sandboxes.registry import Registry

CREATE = {"path": r"/sandbox(es)?$", "method": "POST"}
LIST = {"path": r"/sandbox(es)?$", "method": "GET"}
HTML = b"<html>502 Bad Gateway</html>"


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    monkeypatch.setattr(creation, "LOOK_AGAIN", 0.3)
    monkeypatch.setattr(creation, "LOOK_EVERY", 0.05)


def living(double):
    return [machine.id for machine in double.machines.living()]


class TestLostAnswers:
    @pytest.mark.parametrize(
        "acts",
        [
            [faults.cut_before],
            [faults.cut_after],
            [faults.cut_before, faults.cut_after],
            [faults.status(502, HTML)],
            [faults.status(502, HTML, acts=True)],
            [faults.json_status(500, {"code": 500, "message": "internal"}, acts=True)],
            [faults.json_status(200, {"unexpected": True}, acts=True)],
            [faults.status(200, b"not json", acts=True, Content_Type="application/json")],
            [faults.cut_body(10)],
        ],
        ids=range(9),
    )
    def test_end_with_one_sandbox(self, hosted_provider, hosted_double, labels, acts):
        for act in acts:
            hosted_double.fault(act, **CREATE)
        sandbox = hosted_provider.create(Spec(), labels, deadline=soon())
        assert sandbox.run(["echo", "works"], deadline=soon()).stdout == b"works\n"
        assert living(hosted_double) == [sandbox.id]
        assert hosted_double.machines.made == 1

    def test_a_server_that_is_not_there_is_said_at_once(self, hosted_name, tmp_path, labels):
        with hosted.double(hosted_name, tmp_path) as double:
            provider = Registry(hosted.provider_settings(hosted_name, double)).get(hosted_name)
        with pytest.raises(Exception) as raised:
            provider.create(Spec(), labels, deadline=soon())
        failure = provider.facts(raised.value, operation="clone", stage="acquire")
        assert classify(failure).category is Category.TRANSIENT_NETWORK

    @pytest.mark.parametrize("code", [401, 403, 429])
    def test_a_refusal_is_no_riddle(self, hosted_provider, hosted_double, labels, code):
        fault = hosted_double.fault(
            faults.json_status(code, {"code": code, "statusCode": code, "message": "no"}), times=None, **CREATE
        )
        with pytest.raises(Exception) as raised:
            hosted_provider.create(Spec(), labels, deadline=soon())
        failure = hosted_provider.facts(raised.value, operation="clone", stage="acquire")
        wanted = {401: Category.AUTH_DENIED, 403: Category.AUTH_DENIED, 429: Category.RATE_LIMITED}[code]
        assert classify(failure).category is wanted
        assert fault.seen == 1
        assert living(hosted_double) == []

    def test_not_yet_visible_is_looked_for_again(self, hosted_name, tmp_path, labels):
        with hosted.double(hosted_name, tmp_path, visible_after=0.2) as double:
            provider = Registry(hosted.provider_settings(hosted_name, double)).get(hosted_name)
            double.fault(faults.cut_after, **CREATE)
            sandbox = provider.create(Spec(), labels, deadline=soon())
            assert living(double) == [sandbox.id]

    def test_both_appear_and_the_loser_is_reaped(self, tmp_path, labels):
        # A server that honours no keys, and shows the first one only after the replacement was sent.
        with hosted.double("e2b", tmp_path, honours_keys=False, visible_after=0.6) as double:
            provider = Registry(hosted.provider_settings("e2b", double)).get("e2b")
            double.fault(faults.cut_after, **CREATE)
            double.fault(faults.slow(0.7), **CREATE)
            sandbox = provider.create(Spec(), labels, deadline=soon())
            assert double.machines.made == 2
            assert living(double) == [sandbox.id]

    def test_one_that_appears_still_later_ends_with_the_other(self, tmp_path, labels):
        with hosted.double("e2b", tmp_path, honours_keys=False, visible_after=0.6) as double:
            provider = Registry(hosted.provider_settings("e2b", double)).get("e2b")
            double.fault(faults.cut_after, **CREATE)
            sandbox = provider.create(Spec(), labels, deadline=soon())
            assert len(living(double)) == 2
            wait_for(lambda: len(provider.find(labels, deadline=soon())) == 2)
            sandbox.release(deadline=soon())
            assert living(double) == []

    def test_two_at_once_make_one(self, hosted_provider, hosted_double, labels):
        made = []
        threads = [
            threading.Thread(target=lambda: made.append(hosted_provider.create(Spec(), labels, deadline=soon())))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 4
        assert {sandbox.id for sandbox in made} == set(living(hosted_double))
        assert len(living(hosted_double)) == 1

    @pytest.mark.parametrize(("change", "field"), [({"memory_mb": 1}, "memory_mb"), ({"strict": True}, "strict")])
    def test_what_a_template_decides_is_refused(self, hosted_provider, hosted_double, labels, change, field):
        with pytest.raises(InvalidRequest, match=f"sandbox_spec_{field}: unsupported"):
            hosted_provider.create(Spec(**change), labels, deadline=soon())
        assert living(hosted_double) == []


CREATES = [
    faults.cut_before,
    faults.cut_after,
    faults.cut_body(5),
    faults.status(502, HTML),
    faults.status(502, HTML, acts=True),
    faults.status(504, HTML, acts=True),
    faults.json_status(500, {"code": 500, "message": "internal"}),
    faults.json_status(503, {"code": 503, "message": "busy"}, acts=True),
    faults.json_status(200, {"unexpected": True}, acts=True),
    faults.json_status(429, {"code": 429, "message": "slow down"}),
    faults.slow(0.2),
]
LOOKS = [faults.cut_before, faults.json_status(500, {"code": 500, "message": "internal"}), faults.cut_body(3)]
SEEDS = 200
BATCH = 20


def scheduled(double, seed):
    """Up to three spoiled creates and two spoiled looks."""
    chance = random.Random(seed)
    double.faults.clear()
    double.visible_after = chance.choice([0, 0, 0.1])
    if hasattr(double, "honours_keys"):
        double.honours_keys = chance.random() < 0.5
    if hasattr(double, "boot"):
        double.boot = chance.choice([0, 0, 0.1])
    for _ in range(chance.randint(1, 3)):
        double.fault(chance.choice(CREATES), skip=chance.randint(0, 1), **CREATE)
    for _ in range(chance.randint(0, 2)):
        double.fault(chance.choice(LOOKS), skip=chance.randint(0, 2), **LIST)
    return chance


def ended(double, provider, labels):
    """What a job does after its last attempt: find what there is of it, and end that."""
    double.faults.clear()
    threading.Event().wait(0.1 if double.visible_after else 0)
    for sandbox in provider.find(labels, deadline=soon()):
        sandbox.release(deadline=soon())


def created(provider, labels, times):
    """What a job's attempts end with; what each is told of the SDK's exceptions must be something it can act on."""
    for _ in range(times):
        future = Raised()
        with future:
            return Creation(provider._cloud, provider._loop, Spec(), labels, soon()).run()
        judged = classify(provider.facts(future.exc, operation="clone", stage="acquire")).category
        assert judged not in (Category.UNKNOWN, Category.INVALID_REQUEST), future.exc
    return None


class Raised:
    """Keeps what its block raises."""

    exc = None

    def __enter__(self):
        return self

    def __exit__(self, _, exc, __):
        self.exc = exc
        return isinstance(exc, Exception)


@pytest.mark.parametrize("batch", range(SEEDS // BATCH))
def test_no_schedule_of_faults_leaks_a_sandbox(hosted_provider, hosted_double, batch):
    provider, double = hosted_provider, hosted_double
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        chance = scheduled(double, seed)
        labels = {LABEL_RUN: f"run-{seed}", LABEL_REQUEST: f"request-{seed}"}
        about = created(provider, labels, times=chance.randint(1, 3))
        if about is not None:
            assert living(double) == [about.id], seed
        ended(double, provider, labels)
        assert living(double) == [], seed
