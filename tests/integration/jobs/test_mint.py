"""What GitHub answers to a mint decides: final where it says so, tried again where it does not."""

import pytest

from tests.doubles import github as faults
from tests.rig.jobs import Service

NOT_COVERED = b'{"message": "There is at least one repository that does not exist"}'
SUSPENDED = b'{"message": "This installation has been suspended"}'
REFUSED = b'{"message": "Bad credentials"}'
SLOW_DOWN = b'{"message": "You have exceeded a secondary rate limit"}'

FINAL = [
    ("not-installed", r"/installation$", 404, b'{"message": "Not Found"}', "not_found", "app_not_installed"),
    ("not-covered", r"/access_tokens$", 422, NOT_COVERED, "policy_denied", "repository_not_covered"),
    ("app-refused", r"/installation$", 401, REFUSED, "auth_denied", "app_authentication_failed"),
    ("suspended", r"/access_tokens$", 403, SUSPENDED, "policy_denied", "*"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "path", "code", "body", "category", "reason"), FINAL, ids=[row[0] for row in FINAL])
def test_a_refusal_is_final(local_service: Service, name, path, code, body, category, reason):  # noqa: PLR0917
    url = local_service.private(name)
    where = path if "access" in path else rf"/repos/acme/{name}{path}"
    rule = local_service.hub.fault(faults.status(code, body, "application/json"), path=where, times=None)

    outcome = local_service.outcome(local_service.clone(url, run_id=f"run-{name}", credential={"kind": "github_app"}))

    local_service.hub.faults.remove(rule)
    assert outcome.payload["category"] == category, outcome
    assert outcome.payload["attempt"] == 1
    assert "stage=" in outcome.cause
    assert reason in ("*", outcome.cause.partition("reason=")[2].split()[0])
    assert [event for event, _ in local_service.events(f"run-{name}")] == ["sandbox.git.failed"]


@pytest.mark.parametrize(
    ("name", "fault", "reason"),
    [
        ("down", faults.status(503, b"{}", "application/json"), "*"),
        ("garbage", faults.status(200, b"<html>", "text/html"), "*"),
        ("slow-down", faults.status(403, SLOW_DOWN, "application/json", Retry_After="2"), "rate_limit"),
    ],
)
def test_a_transient_fault_is_met_again(local_service: Service, name, fault, reason):
    url = local_service.private(f"mint-{name}")
    local_service.hub.fault(fault, path=rf"/repos/acme/mint-{name}/installation", times=2)

    outcome = local_service.outcome(
        local_service.clone(url, run_id=f"run-mint-{name}", credential={"kind": "github_app"})
    )

    assert outcome.state == "SUCCESS", outcome
    retries = local_service.retries(f"run-mint-{name}")
    assert all(reason in ("*", found) for found, _ in retries), retries
    if name == "slow-down":
        assert [delay for _, delay in retries] == [2000, 2000]


def test_a_mint_whose_answer_is_lost_costs_one_more_mint_and_no_secret(local_service: Service):
    url = local_service.private("lost-answer")
    before = local_service.hub.counts["mints"]
    local_service.hub.fault(faults.lose_reply(), path=r"/access_tokens$", times=1)

    outcome = local_service.outcome(local_service.clone(url, run_id="run-lost", credential={"kind": "github_app"}))

    assert outcome.state == "SUCCESS", outcome
    assert local_service.hub.counts["mints"] - before == 2
    text = local_service.everything()
    assert [token for token in local_service.hub.grants if token in text] == []
