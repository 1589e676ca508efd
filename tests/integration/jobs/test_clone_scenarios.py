"""Clones that meet a fault, all started at once: the waits are real, so they are waited together."""

import os
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.doubles import github as faults
from tests.rig.jobs import Service

LAG = "token_replication"
TOKEN = "ghs_canaryAAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH.part.two"


@dataclass(frozen=True)
class Scenario:
    name: str
    category: str | None = None
    reason: str | None = None
    attempts: int = 1
    retries: list[str] = field(default_factory=list)
    credential: str = "app"
    prepare: Any = None
    more: dict[str, Any] = field(default_factory=dict)
    exhausted: bool = False


def spoil(act, **match):
    return lambda service, name: service.hub.fault(act, path=rf"/acme/{name}\.git/", **match)


def spoil_pack(act):
    """The second POST is the one that fetches; the first asks for refs."""
    return lambda service, name: service.hub.fault(
        act, path=rf"/acme/{name}\.git/git-upload-pack", method="POST", skip=1
    )


def lag(times: int, code: int = 404, body: bytes = b"Repository not found."):
    return lambda service, name: service.reject(name, times, code, body)


SCENARIOS = [
    Scenario("lag-0"),
    Scenario("lag-1", attempts=2, retries=[LAG], prepare=lag(1)),
    Scenario("lag-2", attempts=3, retries=[LAG, LAG], prepare=lag(2)),
    Scenario("lag-3", category=LAG, reason=LAG, attempts=3, retries=[LAG, LAG], prepare=lag(3), exhausted=True),
    Scenario("lag-401", attempts=2, retries=[LAG], prepare=lag(1, 401, b"Bad credentials")),
    Scenario("lag-403", attempts=2, retries=[LAG], prepare=lag(1, 403, b"")),
    Scenario("lag-404-no-body", attempts=2, retries=[LAG], prepare=lag(1, 404, b"")),
    Scenario("static-wrong", category="not_found", credential="static"),
    Scenario("sealed-minted-fresh", credential="sealed-minted", attempts=2, retries=[LAG], prepare=lag(1)),
    Scenario("sealed-minted-old", credential="sealed-old", category="not_found"),
    Scenario("no-token", category="auth_denied", credential="none"),
    Scenario("status-500", attempts=2, retries=["server_error"], prepare=spoil(faults.status(500))),
    Scenario("status-503", attempts=2, retries=["server_error"], prepare=spoil(faults.status(503))),
    Scenario("status-429", attempts=2, retries=["rate_limit"], prepare=spoil(faults.status(429, Retry_After="1"))),
    Scenario("hang-up", attempts=2, retries=["*"], prepare=spoil(faults.close_before())),
    Scenario("reset", attempts=2, retries=["*"], prepare=spoil(faults.reset())),
    Scenario("cut-pack", attempts=2, retries=["*"], prepare=spoil_pack(faults.cut_body(200_000))),
    Scenario("no-branch", category="invalid_request", more={"ref": {"branch": "absent"}}),
    Scenario("deadline", category="timeout_ambiguous", reason="deadline", more={"deadline": 3},
             prepare=spoil_pack(faults.stall_body(100_000))),
]  # fmt: skip


@pytest.fixture(scope="module")
def sent(made: Service, provider: str) -> dict[str, Any]:
    big = {f"file-{n}.bin": os.urandom(20_000) for n in range(40)}
    jobs = {}
    for scenario in SCENARIOS:
        name = scenario.name
        url = made.private(name, big if name in {"cut-pack", "deadline"} else None)
        run_id = f"run-{name}"
        if scenario.prepare:
            scenario.prepare(made, name)
        if scenario.credential == "sealed-minted":
            made.hub.grant(TOKEN, f"acme/{name}")
        credential = {
            "app": {"kind": "github_app"},
            "none": {"kind": "none"},
            "static": made.sealed(run_id, url, TOKEN),
            "sealed-minted": made.sealed(run_id, url, TOKEN, minted_at=time.time()),
            "sealed-old": made.sealed(run_id, url, TOKEN, minted_at=time.time() - 61),
        }[scenario.credential]
        jobs[name] = made.clone(url, provider=provider, run_id=run_id, credential=credential, **scenario.more)
    return jobs


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_clone_ends_as_it_should(made: Service, sent, scenario: Scenario):
    job = sent[scenario.name]

    outcome = made.outcome(job, timeout=90)

    retries = made.retries(job.run_id)
    assert len(retries) == len(scenario.retries), (retries, outcome)
    for (reason, delay), wanted, planned in zip(retries, scenario.retries, (3000, 9000), strict=False):
        assert wanted in (reason, "*"), retries
        exact = reason in (LAG, "rate_limit")
        assert delay == planned if exact else planned * 0.8 <= delay <= planned * 1.2
    if scenario.category is None:
        assert outcome.state == "SUCCESS", outcome
        assert outcome.result["attempts"] == scenario.attempts
        assert len(outcome.result["commit"]) == 40
    else:
        assert outcome.state == "FAILURE"
        assert outcome.payload["category"] == scenario.category, outcome
        assert outcome.payload["attempt"] == scenario.attempts
        assert outcome.payload["exhausted"] is scenario.exhausted
        assert scenario.reason is None or f"reason={scenario.reason}" in outcome.cause


def test_every_mint_is_revoked_and_used_by_all_attempts(made: Service, sent):
    for job in sent.values():
        made.outcome(job, timeout=90)

    apps = sum(scenario.credential == "app" for scenario in SCENARIOS)
    assert made.hub.counts["mints"] == apps
    assert made.hub.counts["revokes"] == apps


def test_no_token_is_anywhere(made: Service, sent):
    for job in sent.values():
        made.outcome(job, timeout=90)

    text = made.everything()
    found = [token[:12] for token in (TOKEN, *made.hub.grants) if token in text]
    assert found == []


def test_what_was_made_and_failed_is_gone(made: Service, sent):
    failed = [s.name for s in SCENARIOS if s.category is not None]
    for job in sent.values():
        made.outcome(job, timeout=90)

    kept = {kept.run_id for kept in made.services.sandboxes.all()}
    assert not kept & {f"run-{name}" for name in failed}
