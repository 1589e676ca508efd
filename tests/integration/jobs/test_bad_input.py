"""Bad input fails at once, names the field, echoes nothing and makes no sandbox."""

import copy
from typing import Any

import pytest

from tests.rig.jobs import Service

CANARY = "cnry9f3a77"
NO_KEY = f"sbx1.{'0' * 16}.{CANARY}"
GOOD: dict[str, Any] = {
    "schema": 1,
    "run_id": "run-bad",
    "sandbox": {"provider": "local", "spec": {}},
    "repository": {"url": "https://example.invalid/acme/ferry"},
}


def changed(path: str, value: Any) -> dict[str, Any]:
    request = copy.deepcopy(GOOD)
    *parents, last = path.split(".")
    place = request
    for name in parents:
        place = place.setdefault(name, {})
    place[last] = value
    return request


def without(path: str) -> dict[str, Any]:
    request = copy.deepcopy(GOOD)
    *parents, last = path.split(".")
    place = request
    for name in parents:
        place = place[name]
    del place[last]
    return request


BAD = [
    ("unknown field", changed(CANARY, 1), "request", "unknown_field"),
    ("unknown nested field", changed(f"sandbox.{CANARY}", 1), "sandbox", "unknown_field"),
    ("missing schema", without("schema"), "schema", "missing"),
    ("future schema", changed("schema", 2), "schema", "bad_value"),
    ("true is not 1", changed("schema", True), "schema", "wrong_type"),
    ("missing repository", without("repository"), "repository", "missing"),
    ("missing url", without("repository.url"), "repository_url", "missing"),
    ("wrong type", changed("repository.url", 7), "repository_url", "wrong_type"),
    ("run id with a path", changed("run_id", f"../{CANARY}"), "run_id", "bad_value"),
    ("run id with an option", changed("run_id", f"-{CANARY}"), "run_id", "bad_value"),
    ("dot dot", changed("repository.url", f"https://{CANARY}.invalid/../x"), "repository_url", "unsafe_path"),
    ("dash", changed("repository.url", f"https://{CANARY}.invalid/-x/y"), "repository_url", "unsafe_path"),
    ("encoded dots", changed("repository.url", f"https://{CANARY}.invalid/%2e%2e/y"), "repository_url", "*"),
    ("control character", changed("repository.url", f"https://{CANARY}.invalid/a\n/y"), "repository_url", "*"),
    ("userinfo", changed("repository.url", f"https://u:{CANARY}@x.invalid/a/b"), "repository_url", "url_userinfo"),
    ("scheme", changed("repository.url", f"ext::sh -c {CANARY}"), "repository_url", "*"),
    ("plain http", changed("repository.url", f"http://{CANARY}.invalid/a/b"), "repository_url", "url_scheme"),
    ("file", changed("repository.url", f"file:///{CANARY}/b"), "repository_url", "url_scheme"),
    ("branch as option", changed("ref.branch", f"--upload-pack={CANARY}"), "ref_branch", "bad_value"),
    ("branch and tag", changed("ref", {"branch": CANARY, "tag": "v1"}), "ref", "conflict"),
    ("short commit", changed("ref.commit", "abc123"), "ref_commit", "bad_value"),
    ("unknown provider", changed("sandbox.provider", CANARY), "sandbox_provider", "unknown_provider"),
    ("both id and spec", changed("sandbox.id", CANARY), "sandbox", "conflict"),
    ("foreign sandbox", changed("sandbox", {"provider": "local", "id": CANARY}), "sandbox_id", "*"),
    ("garbage box", changed("credential", {"kind": "sealed", "box": CANARY}), "credential_box", "secret_unsealable"),
    ("unknown key", changed("credential", {"kind": "sealed", "box": NO_KEY}), "credential_box", "secret_key_unknown"),
    ("unknown kind", changed("credential", {"kind": CANARY}), "credential", "*"),
    ("both afters", changed("after", {"keep": 1, "release": True}), "after", "conflict"),
    ("endless keep", changed("after.keep", 1e12), "after_keep", "bad_value"),
    ("zero deadline", changed("deadline", 0), "deadline", "bad_value"),
    ("nan deadline", changed("deadline", float("nan")), "deadline", "bad_value"),
    ("depth zero", changed("depth", 0), "depth", "bad_value"),
    ("no object", [CANARY], "request", "wrong_type"),
    ("not github", changed("credential", {"kind": "github_app"}), "repository_url", "not_github"),
]  # fmt: skip


@pytest.fixture(scope="module")
def answers(local_service: Service) -> dict[str, Any]:
    return {name: local_service.send("sandbox.clone", request) for name, request, *_ in BAD}


@pytest.mark.parametrize(("name", "field", "reason"), [(row[0], *row[2:]) for row in BAD], ids=[row[0] for row in BAD])
def test_it_is_refused_at_once(local_service: Service, answers, name, field, reason):
    outcome = local_service.outcome(answers[name])

    assert outcome.payload["code"] == "invalid_request", outcome
    assert f"field={field} " in outcome.cause
    assert reason in ("*", outcome.cause.partition("reason=")[2])
    assert "reason=other" not in outcome.cause
    assert outcome.payload["attempt"] == 1
    assert CANARY not in str(outcome.payload)


def test_no_sandbox_was_made_and_nothing_was_echoed(local_service: Service, answers):
    for answer in answers.values():
        local_service.outcome(answer)

    assert not (local_service.home / "sandboxes").exists() or not list((local_service.home / "sandboxes").iterdir())
    logs = "".join(worker.text() for worker in local_service.workers)
    assert CANARY not in logs


@pytest.mark.parametrize("changes", [{"run_id": "another"}, {"operation": "dispatch"}, {"subject": "https://x/y/z"}])
def test_a_box_for_another_use_is_refused(local_service: Service, changes):
    url = local_service.private(f"bound-{len(str(changes))}")
    sealed = local_service.sealed("run-bound", url, "ghs_tokenfortests0123456789", **changes)

    outcome = local_service.outcome(local_service.clone(url, run_id="run-bound", credential=sealed))

    assert outcome.cause == "invalid_request: field=credential_box reason=secret_binding"


def test_an_expired_box_is_refused_before_a_sandbox_is_made(local_service: Service):
    url = local_service.private("expired")
    sealed = local_service.sealed("run-expired", url, "ghs_tokenfortests0123456789", expires_at=1.0)

    outcome = local_service.outcome(local_service.clone(url, run_id="run-expired", credential=sealed))

    assert outcome.payload["category"] == "auth_denied"
    assert "reason=token_expired" in outcome.cause
    assert [name for name, _ in local_service.events("run-expired")] == ["sandbox.git.failed"]


def test_a_sandbox_of_another_run_is_refused(local_service: Service):
    url = local_service.public("theirs")
    theirs = local_service.outcome(local_service.clone(url, run_id="run-theirs")).result["sandbox"]

    for task, more in (("sandbox.release", {}), ("sandbox.extend", {"seconds": 60})):
        request = {"schema": 1, "run_id": "run-ours", "sandbox": theirs, **more}
        outcome = local_service.outcome(local_service.send(task, request))
        assert outcome.cause == "invalid_request: field=sandbox_id reason=foreign_sandbox"

    again = {"schema": 1, "run_id": "run-theirs", "sandbox": theirs}
    assert local_service.outcome(local_service.send("sandbox.release", again)).result["released"] is True
    assert local_service.outcome(local_service.send("sandbox.release", again)).result["released"] is False
