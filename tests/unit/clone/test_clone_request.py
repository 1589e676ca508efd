"""Requests: what is refused names the field and a reason, and never shows a value."""

import pytest

from tasks.clone.request import CloneRequest, parse, repository_of
from tasks.clone.steps import CloneJob
from worker.failures.model import InvalidRequest
from worker.failures.vocabulary import FIELDS
from worker.retrying.requests import Reason
from worker.sandboxes.base import Spec

MARK = "Zq9Canary"
"""Stands in every bad value; must be found in no error."""

GOOD = {
    "schema": 1,
    "run_id": "run-1",
    "sandbox": {"provider": "local", "spec": {}},
    "repository": {"url": "https://github.com/o/r"},
}


def sandbox(**fields):
    return {"sandbox": {"provider": "docker", **fields}}


def spec(**fields):
    return sandbox(spec=fields)


BAD = [
    ([], "request", "wrong_type"),
    (None, "request", "wrong_type"),
    (MARK, "request", "wrong_type"),
    ({MARK: MARK}, "request", "unknown_field"),
    ({"schema": ...}, "schema", "missing"),
    ({"schema": 2}, "schema", "bad_value"),
    ({"schema": True}, "schema", "wrong_type"),
    ({"schema": 1.0}, "schema", "wrong_type"),
    ({"schema": "1"}, "schema", "wrong_type"),
    ({"schema_": 1}, "request", "unknown_field"),
    ({"run_id": ...}, "run_id", "missing"),
    ({"run_id": 1}, "run_id", "wrong_type"),
    *(({"run_id": bad}, "run_id", "bad_value") for bad in ("", f"-{MARK}", f"{MARK}/..", f"{MARK}\n", "x" * 129, "ü")),
    ({"sandbox": ...}, "sandbox", "missing"),
    ({"sandbox": MARK}, "sandbox", "wrong_type"),
    ({"sandbox": {"spec": {}}}, "sandbox_provider", "missing"),
    ({"sandbox": {"provider": f"{MARK} x", "spec": {}}}, "sandbox_provider", "bad_value"),
    (sandbox(), "sandbox", "conflict"),
    (sandbox(id="a", spec={}), "sandbox", "conflict"),
    (sandbox(id=f"../{MARK}"), "sandbox_id", "bad_value"),
    (sandbox(id=f"-{MARK}"), "sandbox_id", "bad_value"),
    (sandbox(id="a", **{MARK: 1}), "sandbox", "unknown_field"),
    (spec(image=f"-{MARK}"), "sandbox_spec_image", "bad_value"),
    (spec(image=f"{MARK}\n"), "sandbox_spec_image", "bad_value"),
    (spec(env={f"{MARK}=": "x"}), "sandbox_spec_env", "bad_value"),
    (spec(env={"depth": 1}), "sandbox_spec_env", "wrong_type"),
    (spec(env={"A": f"{MARK}\0"}), "sandbox_spec_env", "bad_value"),
    (spec(memory_mb="1"), "sandbox_spec_memory_mb", "wrong_type"),
    (spec(cpus=0), "sandbox_spec_cpus", "bad_value"),
    (spec(cpus=float("nan")), "sandbox_spec_cpus", "bad_value"),
    (spec(strict=1), "sandbox_spec_strict", "wrong_type"),
    (spec(**{MARK: 1}), "sandbox_spec", "unknown_field"),
    ({"repository": {}}, "repository_url", "missing"),
    ({"repository": {"url": 1}}, "repository_url", "wrong_type"),
    ({"ref": {"branch": "a", "tag": "b"}}, "ref", "conflict"),
    ({"ref": {"branch": f"--upload-pack={MARK}"}}, "ref_branch", "bad_value"),
    ({"ref": {"branch": ""}}, "ref_branch", "bad_value"),
    ({"ref": {"tag": f"{MARK}..x"}}, "ref_tag", "bad_value"),
    ({"ref": {"commit": f"{MARK}"}}, "ref_commit", "bad_value"),
    ({"ref": {"commit": "a" * 41}}, "ref_commit", "bad_value"),
    ({"ref": {"commit": "A" * 40}}, "ref_commit", "bad_value"),
    ({"ref": {MARK: 1}}, "ref", "unknown_field"),
    ({"ref": None}, "ref", "wrong_type"),
    ({"depth": 0}, "depth", "bad_value"),
    ({"depth": True}, "depth", "wrong_type"),
    ({"depth": 2**31}, "depth", "bad_value"),
    ({"single_branch": "no"}, "single_branch", "wrong_type"),
    ({"submodules": None}, "submodules", "wrong_type"),
    ({"lfs": 1}, "lfs", "wrong_type"),
    ({"filter": f"sparse:oid={MARK}"}, "filter", "bad_value"),
    ({"filter": "blob:none", "credential": {"kind": "github_app"}}, "filter", "filter_with_credential"),
    ({"credential": {}}, "credential", "missing"),
    ({"credential": {"kind": MARK}}, "credential", "bad_value"),
    ({"credential": {"kind": "sealed"}}, "credential_box", "missing"),
    ({"credential": {"kind": "sealed", "box": f"{MARK}\n"}}, "credential_box", "bad_value"),
    ({"credential": {"kind": "sealed", "box": "x" * 65_537}}, "credential_box", "bad_value"),
    ({"credential": {"kind": "github_app", "installation_id": MARK}}, "credential_installation_id", "wrong_type"),
    ({"credential": {"kind": "none", "token": MARK}}, "credential", "unknown_field"),
    ({"after": {}}, "after", "conflict"),
    ({"after": {"keep": 1, "release": True}}, "after", "conflict"),
    ({"after": {"release": False}}, "after_release", "bad_value"),
    ({"after": {"keep": 0}}, "after_keep", "bad_value"),
    ({"after": {"keep": float("inf")}}, "after_keep", "bad_value"),
    ({"deadline": 0}, "deadline", "bad_value"),
    ({"deadline": 86_401}, "deadline", "bad_value"),
    ({"deadline": "300"}, "deadline", "wrong_type"),
]


@pytest.mark.parametrize(("change", "field", "reason"), BAD)
def test_a_bad_request_names_field_and_reason_only(change, field, reason):
    payload = change
    if isinstance(change, dict):
        payload = {key: value for key, value in {**GOOD, **change}.items() if value is not ...}
    with pytest.raises(InvalidRequest) as caught:
        parse(payload)
    error = caught.value
    assert (error.field_name, error.reason) == (field, reason)
    assert MARK not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None


def test_every_field_and_reason_named_is_in_the_closed_lists():
    assert {field for _, field, _ in BAD} <= FIELDS
    assert {reason for _, _, reason in BAD} <= set(Reason)


def test_what_is_left_out_has_a_default():
    request = parse(GOOD)
    assert (request.depth, request.single_branch, request.fetches_one_branch) == (None, None, False)
    assert (request.submodules, request.lfs, request.filter) == (False, False, None)
    assert request.credential.kind == "none"
    assert (request.after, request.deadline) == (None, None)


def test_a_full_request_is_read():
    request = parse(
        GOOD
        | spec(
            image="registry.example:5000/a/b@sha256:00", env={"A": "b"}, memory_mb=512, cpus=1.5, strict=True, ttl=60
        )
        | {"ref": {"tag": "v1"}, "depth": 1, "after": {"keep": 600}, "deadline": 120}
        | {"credential": {"kind": "sealed", "box": "sbx1.x.y"}}
    )
    made = request.sandbox.spec.spec()
    assert made == Spec(
        image="registry.example:5000/a/b@sha256:00", env={"A": "b"}, memory_mb=512, cpus=1.5, strict=True, ttl=60
    )
    assert request.ref.tag == "v1"
    assert request.fetches_one_branch
    assert (request.after.keep, request.deadline) == (600, 120)
    assert "sbx1" not in repr(request)


def test_a_spec_keeps_the_drivers_defaults():
    assert parse(GOOD).sandbox.spec.spec() == Spec()


@pytest.mark.parametrize(
    ("single", "depth", "one"), [(None, None, False), (None, 1, True), (False, 1, False), (True, None, True)]
)
def test_a_depth_means_one_branch_unless_said_otherwise(single, depth, one):
    request = parse(GOOD | ({} if single is None else {"single_branch": single}) | ({"depth": depth} if depth else {}))
    assert request.fetches_one_branch is one


def test_a_bad_url_is_named_without_its_value():
    request = parse(GOOD | {"repository": {"url": f"https://user:{MARK}@github.com/o/r"}})
    assert MARK not in repr(request)
    with pytest.raises(InvalidRequest) as caught:
        repository_of(request)
    assert (caught.value.field_name, caught.value.reason) == ("repository_url", "url_userinfo")
    assert caught.value.__context__ is None


def test_the_schema_is_an_object_for_backends():
    schema = CloneRequest.model_json_schema(by_alias=True)
    assert set(schema["required"]) == {"schema", "run_id", "sandbox", "repository"}
    assert schema["additionalProperties"] is False


def test_a_job_shows_no_box():
    request = parse(GOOD | {"credential": {"kind": "sealed", "box": MARK}})
    assert MARK not in repr(CloneJob(repository=repository_of(request), request=request, task_id="t"))
