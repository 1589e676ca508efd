"""`workspace.copy_back` through real workers: what an agent did arrives, and what failed says why."""

import json
from pathlib import Path

import pytest

from tests.doubles.repositories import git
from tests.rig.jobs import Service

CHANGE = """
printf 'changed\\n' > README.md
mkdir -p new && printf 'x\\n' > 'new/a file' && chmod +x 'new/a file'
ln -s ../README.md new/link
git add new && git commit -qm 'agent commit'
rm -f gone.txt
git branch side
printf 'later\\n' > later.txt
"""
FILES = {"README.md": b"hello\n", "gone.txt": b"bye\n", "kept.txt": b"kept\n"}


@pytest.fixture
def cloned(made: Service, provider: str, request) -> tuple[dict, str]:
    name = request.node.name.partition("[")[0].removeprefix("test_").replace("_", "-")
    url = made.public(name, FILES)
    run_id = f"run-{name}"
    return made.outcome(made.clone(url, provider=provider, run_id=run_id)).result, run_id


def restored(made: Service, answer: dict, url: str, tmp_path: Path) -> Path:
    """The artifact, restored with plain git as docs/artifacts.md says."""
    store, _, digest = answer["artifact"].partition("/sha256:")
    made.services.artifact_store(store).fetch(digest, tmp_path / "artifact")
    git("clone", "-q", url, str(tmp_path / "restored"))
    bundle = str(tmp_path / "artifact/part-0.bundle")
    git("fetch", "-q", bundle, "refs/sandferry/*:refs/sandferry/*", cwd=tmp_path / "restored")
    git("checkout", "-q", "--detach", "refs/sandferry/snapshot", cwd=tmp_path / "restored")
    return tmp_path / "restored"


def test_the_work_arrives_whole(made: Service, cloned, tmp_path: Path):
    result, run_id = cloned
    made.in_sandbox(result, run_id, CHANGE)

    outcome = made.outcome(made.copy_back(result, run_id))

    assert outcome.state == "SUCCESS", outcome
    answer = outcome.result
    assert answer["outcome"] == "succeeded"
    assert answer["files"] == {"added": 3, "modified": 1, "deleted": 1}
    assert answer["base"] == result["commit"]
    url = made.hub.git_url("acme", run_id.removeprefix("run-"))
    home = restored(made, answer, url, tmp_path)
    assert (home / "README.md").read_text() == "changed\n"
    assert (home / "later.txt").read_text() == "later\n"
    assert (home / "new/a file").stat().st_mode & 0o111
    assert (home / "new/link").readlink() == Path("../README.md")
    assert not (home / "gone.txt").exists()
    heads = git("for-each-ref", "--format=%(refname)", "refs/sandferry/heads", cwd=home).stdout.split()
    assert heads == ["refs/sandferry/heads/main", "refs/sandferry/heads/side"]
    names = [name for name, _ in made.events(run_id) if name.startswith("workspace")]
    assert names == [f"workspace.copy_back.{step}" for step in ("started", "captured", "completed")]


def test_links_that_lead_out_stay_behind_alone(made: Service, cloned, tmp_path: Path):
    result, run_id = cloned
    made.in_sandbox(
        result, run_id, "mkdir -p v/bin; ln -s /usr/bin/python3 v/bin/python; echo x > v/cfg; ln -s cfg v/c"
    )

    answer = made.outcome(made.copy_back(result, run_id)).result

    assert (answer["outcome"], answer["omitted"]) == ("partial", {"unsafe_link": 1})
    home = restored(made, answer, made.hub.git_url("acme", run_id.removeprefix("run-")), tmp_path)
    assert sorted(path.name for path in (home / "v").rglob("*")) == ["c", "cfg"]
    assert (home / "v/c").readlink() == Path("cfg")


def test_nothing_changed_is_no_error(made: Service, cloned):
    result, run_id = cloned

    outcome = made.outcome(made.copy_back(result, run_id))

    assert outcome.result["outcome"] == "succeeded", outcome
    assert outcome.result["files"] == {"added": 0, "modified": 0, "deleted": 0}


def test_the_same_task_twice_delivers_once(made: Service, cloned):
    result, run_id = cloned
    made.in_sandbox(result, run_id, CHANGE)
    sent = made.copy_back(result, run_id)
    first = made.outcome(sent)

    record = made.services.attempts.read(sent.id)
    again = made.outcome(made.send("workspace.copy_back", record.envelope["kwargs"]["request"], task_id=sent.id))

    assert again.result == first.result
    (operation,) = made.services.operations.of_run(run_id)
    assert operation.status == "succeeded"


def test_a_host_repository_gets_refs_and_a_branch(made: Service, cloned):
    result, run_id = cloned
    hub = made.home / "hub.git"
    if hub.exists():
        git("fetch", "-q", made.hub.git_url("acme", run_id.removeprefix("run-")), "+main:main", cwd=hub)
    else:
        git("clone", "-q", "--bare", made.hub.git_url("acme", run_id.removeprefix("run-")), str(hub))
    made.in_sandbox(result, run_id, CHANGE)

    outcome = made.outcome(made.copy_back(result, run_id, deliver={"repository": "hub", "branch": "main"}))

    assert outcome.result["merged"]["state"] in {"merged", "created"}, outcome
    assert git("show", "main:later.txt", cwd=hub).stdout == "later\n"
    refs = git("for-each-ref", "--format=%(refname)", f"refs/sandferry/{run_id}", cwd=hub).stdout.split()
    assert f"refs/sandferry/{run_id}/1/snapshot" in refs


def test_a_capture_that_fails_says_which_step_and_keeps_the_sandbox(made: Service, cloned):
    result, run_id = cloned
    made.in_sandbox(result, run_id, "rm -rf .git && printf 'gitdir: /private/place' > .git && mkdir x && : > x/y")
    before = made.in_sandbox(result, run_id, "find . -type f -o -type l | sort")

    outcome = made.outcome(made.copy_back(result, run_id), timeout=100)

    assert outcome.state in {"FAILURE", "SUCCESS"}
    assert "/private" not in json.dumps(outcome.payload)
    assert made.in_sandbox(result, run_id, "find . -type f -o -type l | sort") == before
    (operation,) = made.services.operations.of_run(run_id)
    assert operation.status in {"failed", "retry_exhausted", "succeeded", "partial"}
    if outcome.state == "FAILURE":
        assert operation.cause == outcome.cause
        assert operation.command == f"sandferry recover {run_id}"


def test_unknown_names_are_refused(made: Service, cloned):
    result, run_id = cloned

    store = made.outcome(made.copy_back(result, run_id, store="s3://elsewhere"))
    unknown = made.outcome(made.copy_back(result, run_id, store="elsewhere"))
    host = made.outcome(made.copy_back(result, run_id, deliver={"repository": "elsewhere"}))

    assert store.cause == "invalid_request: field=store reason=bad_value"
    assert unknown.cause == "invalid_request: field=artifact_store reason=not_configured"
    assert host.cause == "invalid_request: field=deliver_repository reason=not_configured"
