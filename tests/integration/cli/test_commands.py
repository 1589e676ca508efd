"""The command line as an operator uses it, in processes of its own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rig import hosted
from tests.rig.jobs import Service
from tests.rig.waiting import until

REFUSED = "ln -s /etc/passwd escape; git add escape; git commit -qm escape"
"""A commit that no worker takes in."""
TOKEN = "ghs_clitokenAAAABBBBCCCCDDDDEEEE"


def sandferry(made: Service, *arguments: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "worker.cli", *arguments], env=made.env | {"PYTHONPATH": str(Path.cwd())} | env,
        input=stdin, capture_output=True, text=True, timeout=60, check=False, cwd=made.home,
    )  # fmt: skip


def request_for(url: str, run_id: str, **more) -> str:
    sandbox = {"provider": "local", "spec": {}}
    return json.dumps({"schema": 1, "run_id": run_id, "sandbox": sandbox, "repository": {"url": url}, **more})


def test_send_waits_and_prints_the_result(local_service: Service):
    url = local_service.public("sent")

    done = sandferry(local_service, "send", "sandbox.clone", "-", "--wait", stdin=request_for(url, "run-sent"))

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["path"].endswith("/repos/acme/sent")


def test_send_ends_with_the_cause_line(local_service: Service):
    url = local_service.private("closed")

    done = sandferry(local_service, "send", "sandbox.clone", "-", "--wait", stdin=request_for(url, "run-closed"))

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("clone_failed: stage=clone category=auth_denied")
    assert "Traceback" not in done.stderr


def test_send_says_where_json_breaks(local_service: Service):
    done = sandferry(local_service, "send", "sandbox.clone", "-", stdin='{"schema": 1,\n oops')

    assert done.returncode == 2
    assert "line 2" in done.stderr
    assert "oops" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("send", "sandbox.nothing", "-"), "there are sandbox.clone"),
        (("seal", "--run", "r", "--url", "https://h/a/b", "--public-key", "zzz"), "--public-key"),
        (("seal", "--run", "-r", "--url", "https://h/a/b"), "--run"),
        (("seal", "--run", "r", "--url", "https://u:hush@h/a/b"), "--url"),
        (("seal", "--run", "r", "--url", "https://h/a/b", "--operation", "bogus"), "--operation"),
        (("worker", "--bogus-option"), "--bogus-option"),
        (("worker", "-Q", "nowhere"), "--queues"),
    ],
)
def test_wrong_usage_is_said_in_a_line_or_two(local_service: Service, arguments, says):
    done = sandferry(local_service, *arguments, stdin="{}")

    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert "hush" not in done.stderr


def test_a_broker_that_is_down_is_one_line(local_service: Service):
    broker = {"SANDFERRY_BROKER_URL": "redis://:hush@127.0.0.1:1/0"}

    done = sandferry(local_service, "send", "sandbox.clone", "-", stdin="{}", **broker)

    assert done.returncode == 2
    assert done.stderr == "sandferry: the broker does not answer. Is it up? Try `sandferry doctor`.\n"


def test_operations_are_shown_and_what_failed_is_recovered(local_service: Service):
    url = local_service.public("recovered")
    cloned = local_service.outcome(local_service.clone(url, run_id="run-recovered")).result
    local_service.in_sandbox(cloned, "run-recovered", REFUSED)
    failed = local_service.outcome(local_service.copy_back(cloned, "run-recovered"))
    assert failed.payload["category"] == "policy_denied", failed

    listed = sandferry(local_service, "operations", "list", "--run", "run-recovered").stdout
    operation = listed.split()[2]
    shown = sandferry(local_service, "operations", "show", operation).stdout
    local_service.in_sandbox(cloned, "run-recovered", "git reset -q --hard HEAD~1; echo mine > mine.txt")
    recovered = sandferry(local_service, "recover", "run-recovered", "--wait")
    again = sandferry(local_service, "recover", "run-recovered")

    assert operation.startswith("op-")
    assert "  failed  copy_back_failed: stage=import category=policy_denied" in listed
    assert "attempt 1  copy_back_failed: stage=import" in shown
    assert "next      sandferry recover run-recovered" in shown
    assert json.loads(recovered.stdout)["files"] == {"added": 1, "modified": 0, "deleted": 0}
    assert again.returncode == 1
    assert "nothing to recover" in again.stderr
    assert sandferry(local_service, "operations", "show", "op-none").returncode == 1


def test_each_workspace_of_a_run_is_recovered(local_service: Service):
    run, boxes = "run-two-boxes", []
    for name in ("first", "second"):
        cloned = local_service.outcome(local_service.clone(local_service.public(name), run_id=run)).result
        local_service.in_sandbox(cloned, run, f"{REFUSED}; echo {name} > mine.txt")
        local_service.outcome(local_service.copy_back(cloned, run))
        local_service.in_sandbox(cloned, run, "git reset -q --hard HEAD~1")
        boxes.append(cloned)
    assert local_service.outcome(local_service.copy_back(boxes[1], run)).result["outcome"] == "succeeded"

    done = sandferry(local_service, "recover", run, "--wait")

    assert json.loads(done.stdout)["files"]["added"] == 1, done
    newest = local_service.services.operations.of_run(run)[0]
    assert (newest.status, newest.sandbox_id) == ("succeeded", boxes[0]["sandbox"]["id"])
    assert sandferry(local_service, "recover", run).returncode == 1


def test_seal_reads_the_token_from_standard_input_and_the_box_opens(local_service: Service):
    url = local_service.private("boxed")
    local_service.hub.grant(TOKEN, "acme/boxed")
    sealed = sandferry(local_service, "seal", "--run", "run-boxed", "--url", url, stdin=TOKEN + "\n")
    assert sealed.returncode == 0, sealed.stderr
    box = sealed.stdout.strip()
    request = request_for(url, "run-boxed", credential={"kind": "sealed", "box": box})

    done = sandferry(local_service, "send", "sandbox.clone", "-", "--wait", stdin=request)

    assert done.returncode == 0, done.stderr
    assert TOKEN not in box


def test_keys_are_made_listed_and_retired(local_service: Service, tmp_path: Path):
    ring = {"SANDFERRY_KEYRING_FILE": str(tmp_path / "ring.json")}

    first = sandferry(local_service, "keys", "new", **ring).stdout.strip()
    second = sandferry(local_service, "keys", "new", **ring).stdout.strip()
    listed = [line.split() for line in sandferry(local_service, "keys", "list", **ring).stdout.splitlines()]

    assert [row[2] for row in listed] == [first, second]
    assert (tmp_path / "ring.json").stat().st_mode & 0o777 == 0o600
    assert sandferry(local_service, "keys", "retire", listed[0][0], **ring).returncode == 0
    assert sandferry(local_service, "keys", "retire", listed[0][0], **ring).returncode == 1
    assert len(sandferry(local_service, "keys", "list", **ring).stdout.splitlines()) == 1


def test_keys_need_a_place(local_service: Service):
    env = {name: value for name, value in local_service.env.items() if name != "SANDFERRY_KEYRING_FILE"}
    done = subprocess.run(
        [sys.executable, "-m", "worker.cli", "keys", "list"], env=env, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip

    assert done.returncode == 2
    assert done.stderr == "sandferry: SANDFERRY_KEYRING_FILE: not set\n"


def test_runs_list_shows_the_failed_with_their_cause(local_service: Service):
    closed = local_service.private("hidden")
    local_service.outcome(local_service.clone(closed, run_id="run-shut"))
    local_service.outcome(local_service.clone(local_service.public("open"), run_id="run-open"))

    lines = sandferry(local_service, "runs", "list", "--failed").stdout
    rows = [
        json.loads(line)
        for line in sandferry(local_service, "runs", "list", "--failed", "--json").stdout.split("\n")[:-1]
    ]

    (shut,) = [row for row in rows if row["run_id"] == "run-shut"]
    assert (shut["last_event"], shut["cause"][:25]) == ("sandbox.git.failed", "clone_failed: stage=clone")
    assert f"run-shut  sandbox.git.failed  {shut['cause']}" in lines
    assert sandferry(local_service, "runs", "show", "run-shut").stdout.count(shut["cause"]) == 1
    assert "run-open" not in lines


def test_runs_show_prints_the_timeline(local_service: Service):
    url = local_service.public("shown")
    local_service.outcome(local_service.clone(url, run_id="run-shown"))

    shown = sandferry(local_service, "runs", "show", "run-shown")
    lines = sandferry(local_service, "runs", "show", "run-shown", "--json").stdout.splitlines()
    rows = [json.loads(line) for line in lines]

    names = ["sandbox.initializing", "sandbox.ready", "sandbox.git.started", "sandbox.git.completed"]
    assert [line.split()[1] for line in shown.stdout.splitlines()] == names
    assert shown.stdout.startswith("   +0.000s  sandbox.initializing")
    assert [row["name"] for row in rows] == names
    assert "run-shown" in sandferry(local_service, "runs", "list").stdout
    assert sandferry(local_service, "runs", "show", "run-none").returncode == 1


def test_cancel_stops_a_run_before_it_starts(local_service: Service):
    url = local_service.public("never")
    assert sandferry(local_service, "cancel", "run-never").returncode == 0

    outcome = local_service.outcome(local_service.clone(url, run_id="run-never"))

    assert outcome.payload["code"] == "cancelled"
    assert local_service.services.sandboxes.of_run("run-never") == []
    assert sandferry(local_service, "cancel", "../x").returncode == 2


def test_doctor_finds_a_good_installation(local_service: Service):
    done = sandferry(local_service, "doctor", SANDFERRY_DOCKER_URL="unix:///nonexistent/docker.sock")
    rows = [json.loads(line) for line in sandferry(local_service, "doctor", "--json").stdout.splitlines()]

    assert done.returncode == 0, done.stdout
    levels = {row["check"]: row["level"] for row in rows}
    assert levels["broker"] == levels["record store"] == levels["result backend"] == "ok"
    assert levels["package tasks"] == levels["package worker"] == "ok"
    assert levels["key ring (1 keys)"] == "ok"
    assert "warn  docker" in done.stdout


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"SANDFERRY_BROKER_URL": "redis://127.0.0.1:1/0"}, "FAIL  broker: no answer"),
        ({"SANDFERRY_STATE_URL": "redis://127.0.0.1:1/0"}, "FAIL  record store: no answer"),
        ({"SANDFERRY_KEYRING_FILE": "/nonexistent"}, "FAIL  key ring: "),
        ({"SANDFERRY_GITHUB_APP_KEY_FILE": "/nonexistent"}, "FAIL  github app: "),
    ],
)
def test_doctor_says_what_is_wrong(local_service: Service, settings, line):
    done = sandferry(local_service, "doctor", **settings)

    assert done.returncode == 1
    assert line in done.stdout


@pytest.mark.parametrize("name", hosted.NAMES)
def test_doctor_asks_the_hosted_providers(local_service: Service, tmp_path: Path, name: str):
    with hosted.double(name, tmp_path) as double:
        env = {f"SANDFERRY_{key}": value for key, value in hosted.environment(name, double).items()}
        good = sandferry(local_service, "doctor", **env)
        double.api_key = "another"
        refused = sandferry(local_service, "doctor", **env)
    away = sandferry(local_service, "doctor", **env)
    hosted.key_file(name, tmp_path).write_text("")
    empty = sandferry(local_service, "doctor", **env)

    assert f"ok    {name}\n" in good.stdout
    assert f"FAIL  {name}: the key is refused" in refused.stdout
    assert f"warn  {name}: no answer" in away.stdout
    assert f"FAIL  {name}: SANDFERRY_{name.upper()}_API_KEY_FILE cannot be read" in empty.stdout


def test_doctor_finds_a_package_that_hides_ours(local_service: Service, tmp_path: Path):
    (tmp_path / "tasks.py").write_text("")

    done = subprocess.run(
        [sys.executable, "-m", "worker.cli", "doctor"], env=local_service.env, cwd=tmp_path, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip

    assert "FAIL  package tasks: another `tasks` hides ours" in done.stdout
    assert done.returncode == 1


def test_doctor_takes_a_checkout_beside_the_installed_package_for_ours(local_service: Service, tmp_path: Path):
    for name in ("worker", "tasks"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_bytes(Path(name, "__init__.py").read_bytes())
    command = [sys.executable, "-c", "import sys; sys.path.remove(''); from worker.cli import main; main()", "doctor"]

    env = {**local_service.env, "PYTHONPATH": str(Path.cwd())}

    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    assert "ok    package tasks\n" in done.stdout
    assert "ok    package worker\n" in done.stdout


def test_settings_that_lose_tasks_are_refused_without_their_values(local_service: Service):
    done = sandferry(local_service, "runs", "list", SANDFERRY_VISIBILITY_TIMEOUT="60")
    typo = sandferry(local_service, "runs", "list", SANDFERRY_LEASE="s3cret")

    assert done.returncode == typo.returncode == 2
    assert "visibility_timeout must exceed deadline_max" in done.stderr
    assert typo.stderr.startswith("sandferry: not valid: SANDFERRY_LEASE: ")
    assert "s3cret" not in typo.stderr


def test_valkey_worker_and_beat_run_together(tmp_path: Path):
    port = 20_000 + os.getpid() % 10_000
    env = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(Path.cwd()), "SANDFERRY_SWEEP_EVERY": "1",
        "SANDFERRY_BROKER_URL": f"redis://127.0.0.1:{port}/0",
    }  # fmt: skip
    log = (tmp_path / "log").open("wb")
    started = [
        subprocess.Popen([sys.executable, "-m", "worker.cli", *args], env=env, stdout=log, stderr=log, cwd=tmp_path)
        for args in (["valkey", "--port", str(port)], ["worker", "-c", "1"], ["beat"])
    ]
    try:
        until(
            lambda: (tmp_path / "log").read_text().count("maintenance.sweep[") >= 2, seconds=40,
            what="the worker has received sweeps from beat",
        )  # fmt: skip
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
            process.wait(20)
    assert [process.returncode for process in started] == [0, 0, 0]


@pytest.mark.parametrize("option", [("--operation", "clon"), ("--credential-age", "-1"), ("--credential", "s3cret")])
def test_explain_refuses_what_it_does_not_know(local_service: Service, option: tuple[str, str]):
    done = sandferry(local_service, "explain", *option, "fatal: early EOF")
    assert done.returncode == 2
    assert option[0] in done.stderr or "credential" in done.stderr
    assert "s3cret" not in done.stdout + done.stderr
