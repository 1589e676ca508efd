"""How a tool may end, and what its client is told."""

import hashlib
import json
import time

import pytest

from tests.rig.jobs import Outcome, Service
from tests.rig.tools import dispatch, push, request, tool
from tests.rig.waiting import promptly


@pytest.fixture(scope="module")
def warm(made: Service) -> dict:
    """A sandbox that is kept: the run's id and how a request names it."""
    wanted = request(push(made, tool("cat", effect="read")), provider=made.provider, run_id=f"run-warm-{made.provider}")
    outcome = made.outcome(dispatch(made, {**wanted, "after": {"keep": 600}}))
    assert outcome.state == "SUCCESS", outcome
    return {"run_id": wanted["run_id"], "sandbox": outcome.result["sandbox"]}


def run(made: Service, warm: dict, script: str, *, effect="read", manifest=None, **more) -> Outcome:
    reference = push(made, tool(script, effect=effect, **(manifest or {})))
    wanted = request(reference, provider=made.provider, **warm) | more
    return made.outcome(dispatch(made, wanted))


def test_a_tool_gets_its_arguments_and_gives_its_output(made: Service, warm):
    outcome = run(made, warm, "cat", manifest={"output": "json"}, arguments={"text": "straße", "n": [1, 2.5, None]})

    result = outcome.result
    assert result["output"] == {"text": "straße", "n": [1, 2.5, None]}
    assert (result["outcome"], result["exit_code"], result["signal"]) == ("succeeded", 0, None)
    assert (result["effect"], result["receipt"], result["truncated"], result["attempts"]) == ("read", "fresh", False, 1)
    assert set(result["steps_ms"]) >= {"acquire", "dispatch", "collect"}


@pytest.mark.parametrize("effect", ["read", "write", "mixed", None])
def test_every_effect_runs_and_is_said(made: Service, warm, effect):
    outcome = run(made, warm, "echo hi", effect=effect)

    assert outcome.result["output"] == "hi\n"
    assert outcome.result["effect"] == (effect or "undeclared")


def test_a_package_is_uploaded_once_a_sandbox(made: Service, warm):
    first = run(made, warm, "echo upload-once")
    second = run(made, warm, "echo upload-once")

    assert "bootstrap" in first.result["steps_ms"]
    assert "bootstrap" not in second.result["steps_ms"]


def test_a_package_that_was_spoilt_in_the_sandbox_is_uploaded_again(made: Service, warm):
    run(made, warm, "echo original")
    spoil = (
        'for f in "${SANDFERRY_TOOL_DIR%/*/*}"/*/files/run; do '
        'grep -q original "$f" && chmod u+w "$f" && echo "echo spoilt" >"$f"; done; :'
    )
    assert run(made, warm, spoil).result["exit_code"] == 0

    again = run(made, warm, "echo original")

    assert again.result["output"] == "original\n"
    assert "bootstrap" in again.result["steps_ms"]


@pytest.mark.parametrize(
    ("script", "outcome", "exit_code", "signal"),
    [
        ("exit 3", "failed", 3, None),
        ("kill -9 $$", "killed", None, "SIGKILL"),
        ("kill -TERM $$", "killed", None, "SIGTERM"),
        ("exec nosuchprogram", "failed", 127, None),
        ("set -e; false", "failed", 1, None),
    ],
)
def test_a_tool_that_fails_is_a_result(made: Service, warm, script, outcome, exit_code, signal):  # noqa: PLR0917 - columns
    told = run(made, warm, f"echo partial; {script}")

    assert told.state == "SUCCESS", told
    assert (told.result["outcome"], told.result["exit_code"], told.result["signal"]) == (outcome, exit_code, signal)
    assert told.result["output"] == "partial\n"


def test_a_timeout_ends_the_whole_group(made: Service, warm):
    began = time.monotonic()
    late = "(sleep 2; echo late >late.txt) & echo begun; wait"
    told = run(made, warm, late, manifest={"timeout": 1})
    assert time.monotonic() - began < promptly(8)
    assert (told.result["outcome"], told.result["output"]) == ("timed_out", "begun\n")

    looked = run(made, warm, "sleep 2; ls late.txt 2>/dev/null || echo nothing")

    assert looked.result["output"] == "nothing\n"


def test_a_request_may_shorten_the_timeout(made: Service, warm):
    told = run(made, warm, "sleep 15", timeout=1)
    assert told.result["outcome"] == "timed_out"


def test_a_child_in_the_background_does_not_hold_the_result(made: Service, warm):
    began = time.monotonic()
    told = run(made, warm, "(sleep 30) & echo over")

    assert (told.result["outcome"], told.result["output"]) == ("succeeded", "over\n")
    assert time.monotonic() - began < promptly(10)


def test_output_above_the_limit_is_cut_and_the_tool_goes_on(made: Service, warm):
    told = run(made, warm, "head -c 3000000 /dev/zero | tr '\\0' x; exit 4", manifest={"output_limit": 1001})

    assert (told.result["output"], told.result["truncated"]) == ("x" * 1001, True)
    assert told.result["exit_code"] == 4


def test_no_letter_is_cut_in_two(made: Service, warm):
    script = "printf x; i=0; while [ $i -lt 300 ]; do printf '%0100d' 0 | sed 's/0/é/g'; i=$((i+1)); done"
    told = run(made, warm, script)
    assert told.result["output"].strip("\n").replace("\n", "") == "x" + "é" * 30_000

    cut = run(made, warm, "printf 'aé'", manifest={"output_limit": 2})
    assert (cut.result["output"], cut.result["truncated"]) == ("a", True)


def test_bytes_that_are_no_text_are_replaced(made: Service, warm):
    assert run(made, warm, "printf 'a\\377b'").result["output"] == "a\ufffdb"


def test_an_argument_larger_than_a_command_line_arrives(made: Service, warm):
    text = "k" * 110_000
    told = run(made, warm, "sha256sum", arguments={"t": text})

    digest = hashlib.sha256(json.dumps({"t": text}, separators=(",", ":")).encode()).hexdigest()
    assert told.result["output"].split()[0] == digest


def test_json_that_is_none_is_said(made: Service, warm):
    for output in ("no json", '{"a": NaN}', "[" * 5000):
        told = run(made, warm, f"printf '%s' '{output}'", manifest={"output": "json"})
        assert (told.result["output"], told.result["reason"]) == (output, "output_malformed")
        assert told.result["outcome"] == "succeeded"


def test_a_large_output_goes_to_the_artifact_store(made: Service, warm):
    told = run(
        made,
        warm,
        "head -c 900000 /dev/zero | tr '\\0' y; exit 1",
        manifest={"output_limit": 1_000_000},
        effect="write",
    )

    store, _, digest = told.result["artifact"].partition("/sha256:")
    assert "output" not in told.result
    assert (told.result["outcome"], store) == ("failed", "default")
    kept = made.home / "artifacts/sha256" / digest[:2] / digest / "output"
    assert kept.read_bytes() == b"y" * 900_000


def test_a_small_image_is_enough(request):
    made = request.getfixturevalue("docker_service")
    reference = push(made, tool("cat; exit 5", effect="write"))
    spec = {"provider": "docker", "spec": {"image": "sandferry-test-busybox:latest"}}
    wanted = {**_request(reference, "docker"), "sandbox": spec, "arguments": {"a": 1}, "after": {"release": True}}

    told = made.outcome(dispatch(made, wanted))

    assert told.state == "SUCCESS", told
    assert (told.result["output"], told.result["exit_code"]) == ('{"a":1}', 5)
    assert made.services.sandboxes.of_run(wanted["run_id"]) == []


def _request(reference: str, provider: str) -> dict:
    return request(reference, provider=provider)
