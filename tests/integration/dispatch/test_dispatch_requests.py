"""Bad input fails at once and makes no sandbox; secrets reach the tool and nothing else."""

import time
from typing import Any

import pytest
from pydantic import SecretStr

from tests.rig.faulty import Bench
from tests.rig.jobs import Service
from tests.rig.tools import dispatch, push, request, tool
from worker.secrets import keyring
from worker.secrets.sealed import Plaintext, seal
from worker.secrets.subject import tool_subject

CANARY = "cnry7b21e0"
MANY = [f"V{number}" for number in range(40)]
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}


@pytest.fixture(scope="module")
def references(local_service: Service) -> dict[str, str]:
    return {
        "write": push(local_service, tool("cat", input_schema=SCHEMA)),
        "read": push(local_service, tool("cat", effect="read", input_schema=SCHEMA)),
        "slow": push(local_service, tool("cat", timeout=601)),
        "docker": push(local_service, tool("cat", provider="docker")),
        "imaged": push(local_service, tool("cat", template="alpine:3")),
        "many": push(local_service, tool("cat", effect="read", env=MANY)),
        "large": push(local_service, tool("cat", output_limit=10_000_000)),
    }


IMAGE = {"provider": "local", "spec": {"image": CANARY}}

BAD: list[tuple[str, str, dict[str, Any], str, str]] = [
    ("no digest", "write", {"tool": f"note@{CANARY}"}, "tool", "bad_value"),
    ("unknown digest", "write", {"tool": f"probe@sha256:{'0' * 64}"}, "tool", "not_found"),
    ("another name", "write", {"tool": "other@sha256:"}, "tool", "name_mismatch"),
    ("no such store", "write", {"tool_store": "elsewhere"}, "tool_store", "not_configured"),
    ("timeout over the maximum", "slow", {}, "manifest_timeout", "out_of_range"),
    ("timeout over the manifest's", "write", {"timeout": 21}, "timeout", "out_of_range"),
    ("no id", "write", {"dispatch_id": None}, "dispatch_id", "missing"),
    ("no time", "write", {"issued_at": None}, "issued_at", "missing"),
    ("a time that is to come", "write", {"issued_at": time.time() + 86_400}, "issued_at", "out_of_range"),
    ("a variable that no program takes", "read", {"env": {"COUNT": "\U0001f600" * 32_768}}, "env", "too_large"),
    ("variables that no program takes", "many", {"env": dict.fromkeys(MANY, "x" * 32_768)}, "env", "too_large"),
    ("bad id", "write", {"dispatch_id": f"../{CANARY}"}, "dispatch_id", "bad_value"),
    ("arguments", "write", {"arguments": {CANARY: 1}}, "arguments", "schema"),
    ("arguments of another type", "read", {"arguments": {"n": CANARY}}, "arguments", "schema"),
    ("variable", "write", {"env": {CANARY.upper(): "x"}}, "env", "not_allowed"),
    ("variable of ours", "write", {"env": {"SANDFERRY_INPUT": CANARY}}, "env", "not_allowed"),
    ("path", "write", {"env": {"PATH": CANARY}}, "env", "not_allowed"),
    ("secret variable", "write", {"secrets": {"PATH": CANARY}}, "secrets", "not_allowed"),
    ("garbage secret", "write", {"secrets": {"SECRET": CANARY}}, "credential_box", "secret_unsealable"),
    ("variable twice", "write", {"env": {"SECRET": "x"}, "secrets": {"SECRET": CANARY}}, "request", "conflict"),
    ("provider", "docker", {}, "sandbox_provider", "provider_mismatch"),
    ("template", "imaged", {"sandbox": IMAGE}, "sandbox_spec_image", "template_mismatch"),
    ("no place for the output", "large", {"artifact_store": "nowhere"}, "artifact_store", "not_configured"),
    ("effect in the request", "write", {"effect": "read"}, "request", "unknown_field"),
    ("true is not 1", "write", {"schema": True}, "schema", "wrong_type"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "which", "changes", "field", "reason"), BAD, ids=[row[0] for row in BAD])
def test_it_is_refused_at_once(local_service: Service, references, name, which, changes, field, reason):  # noqa: PLR0917 - columns
    wanted = {**request(references[which], run_id="run-bad"), **changes}
    if wanted["tool"] == "other@sha256:":
        wanted["tool"] = references["write"].replace("probe@", "other@")
    for key in ("dispatch_id", "issued_at"):
        if wanted[key] is None:
            del wanted[key]

    outcome = local_service.outcome(dispatch(local_service, wanted))

    assert outcome.cause == f"invalid_request: field={field} reason={reason}", outcome
    assert CANARY not in str(outcome.payload)
    assert "sandbox.initializing" not in [name for name, _ in local_service.events("run-bad")]
    assert CANARY not in "".join(worker.text() for worker in local_service.workers)


def sealed(made: Service, reference: str, secret: str, **changes: Any) -> str:
    ring = keyring.load(made.home / "keyring.json")
    fields: dict[str, Any] = {
        "run_id": "run-sealed", "operation": "dispatch", "subject": tool_subject(reference.rpartition(":")[2]),
        "expires_at": time.time() + 600, "username": "SECRET", "secret": SecretStr(secret),
    }  # fmt: skip
    return seal(ring.current.public_key, Plaintext(**(fields | changes)))


@pytest.mark.parametrize("effect", ["read", "write"])
def test_a_secret_reaches_the_tool_and_nothing_else(local_service: Service, effect):
    secret = f"s3cr3t-{CANARY}-{effect}"
    script = 'echo "${#SECRET}"; echo "$SECRET"; echo "$SECRET" >&2; exit 1'
    reference = push(local_service, tool(script, effect=effect))
    wanted = request(reference, run_id="run-sealed", secrets={"SECRET": sealed(local_service, reference, secret)})

    outcome = local_service.outcome(dispatch(local_service, wanted))

    assert outcome.result["output"] == f"{len(secret)}\n***\n"
    assert secret not in local_service.everything()
    tails = list((local_service.home / "diagnostics").glob("*.txt"))
    assert any("***" in path.read_text() for path in tails)
    assert not any(secret in path.read_text() for path in tails)


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"run_id": "another"}, "invalid_request: field=credential_box reason=secret_binding"),
        ({"operation": "clone"}, "invalid_request: field=credential_box reason=secret_binding"),
        ({"subject": tool_subject("0" * 64)}, "invalid_request: field=credential_box reason=secret_binding"),
        ({"username": "COUNT"}, "invalid_request: field=secrets reason=secret_binding"),
    ],
)
def test_a_secret_for_another_use_is_refused(local_service: Service, references, changes, cause):
    box = sealed(local_service, references["write"], CANARY, **changes)
    wanted = request(references["write"], run_id="run-sealed", secrets={"SECRET": box})
    assert local_service.outcome(dispatch(local_service, wanted)).cause == cause


def test_an_expired_secret_is_refused_before_a_sandbox_is_made(local_service: Service, references):
    box = sealed(local_service, references["write"], CANARY, expires_at=1.0, run_id="run-expired")
    wanted = request(references["write"], run_id="run-expired", secrets={"SECRET": box})

    outcome = local_service.outcome(dispatch(local_service, wanted))

    assert outcome.payload["category"] == "auth_denied"
    assert "reason=token_expired" in outcome.cause
    assert [name for name, _ in local_service.events("run-expired")] == ["tool.dispatch.failed"]


def test_only_allowed_digests_run(tmp_path, valkey_url):
    bench = Bench(tmp_path, valkey_url)
    packages = [tool("echo one", effect="read"), tool("echo two", effect="read")]
    for package in packages:
        bench.services.tools("default").put(package)
    allowed, other = (str(package.descriptor.reference) for package in packages)
    config = bench.services.settings
    bench.services.settings = config.model_copy(update={"tools_allowed": (allowed.partition("@")[2],)})

    assert bench.deliver(request(allowed))[0] == "SUCCESS"
    assert bench.deliver(request(other)) == ("FAILURE", "invalid_request: field=tool reason=not_allowed")
