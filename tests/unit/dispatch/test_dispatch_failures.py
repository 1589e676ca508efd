"""A failure's verdict and cause, its retries, and what is told of an output."""

import base64
import json

import pytest

from tasks.dispatch.failure import OUTCOME_UNKNOWN, Tries, cause_of_tool, tool_failure, verdict_of
from tasks.dispatch.gate import Ledger, Phase, Place, Position, Receipt
from tasks.dispatch.launcher import ReceiptOf
from tasks.dispatch.result import decoded, masker, outcome_of, output_of, reason_of
from worker.failures.cause import Cause
from worker.failures.model import Category, Failure, Verdict
from worker.tools.manifest import Effect

LOST = Failure(operation="sandbox", stage="run", category=Category.SANDBOX_LOST, reason="sandbox_lost", exception="x.Y")
FINAL = Verdict(category=Category.SANDBOX_LOST, reason="sandbox_lost", retry=False, exhausted=True)


def at(phase=Phase.MAYBE_SENT, effect=Effect.WRITE, ledger=Ledger.PRESENT) -> Position:
    return Position(effect=effect, phase=phase, receipt=Receipt.ABSENT, ledger=ledger, place=Place.SAME)


def made(position, *, stage="dispatch", effect=Effect.WRITE, failure=LOST):
    return tool_failure(failure, stage=stage, effect=effect, position=position)


@pytest.mark.parametrize(
    ("position", "effect", "unknown"),
    [
        (at(), Effect.WRITE, True),
        (at(Phase.REPLY_LOST, Effect.MIXED), Effect.MIXED, True),
        (at(effect=Effect.UNDECLARED), Effect.UNDECLARED, True),
        (at(Phase.NOT_SENT), Effect.WRITE, False),
        (at(Phase.NOT_SENT, ledger=Ledger.ABSENT_UNVOUCHED), Effect.WRITE, True),
        (at(effect=Effect.READ), Effect.READ, False),
        (None, Effect.WRITE, False),
    ],
)
def test_only_an_open_outcome_is_unknown(position, effect, unknown):
    failure = made(position, effect=effect)
    verdict = verdict_of(failure, FINAL)

    assert failure.unknown is unknown
    assert (verdict.rule == OUTCOME_UNKNOWN) is unknown
    assert verdict.category is (Category.UNKNOWN if unknown else Category.SANDBOX_LOST)
    assert not (unknown and verdict.exhausted)


def test_a_retry_and_a_cancel_stay_what_they_are():
    retried = Verdict(category=Category.TRANSIENT_NETWORK, reason="dns", retry=True, countdown=2.0)
    cancelled = Verdict(category=Category.CANCELLED, reason="cancelled", retry=False)
    assert verdict_of(made(at()), retried) is retried
    assert verdict_of(made(at()), cancelled) is cancelled


def test_bad_input_that_was_never_sent_stays_bad_input():
    bad = Verdict(category=Category.INVALID_REQUEST, reason="malformed", retry=False)
    assert verdict_of(made(at(Phase.NOT_SENT, ledger=Ledger.ABSENT_UNVOUCHED)), bad) is bad
    assert verdict_of(made(at()), bad).rule == OUTCOME_UNKNOWN


@pytest.mark.parametrize(
    ("failure", "idempotent"),
    [
        (made(at()), False),
        (made(at(Phase.REPLY_LOST)), False),
        (made(at(), stage="receipt"), True),
        (made(at(), stage="acquire"), True),
        (made(at(Phase.NOT_SENT)), True),
        (made(at(effect=Effect.READ), effect=Effect.READ), True),
        (made(None, stage="collect"), True),
    ],
)
def test_what_may_be_repeated(failure, idempotent):
    assert failure.idempotent is idempotent
    assert failure.operation == "dispatch"


def test_the_cause_says_stage_and_effect():
    failure = made(at())
    verdict = verdict_of(failure, FINAL)
    assert str(cause_of_tool(failure, verdict, Cause.of("other"))) == (
        "managed_tool_outcome_unknown: stage=dispatch effect=write exception=other reason=sandbox_lost"
    )
    plain = Cause.of("managed_tool_dispatch_failed", stage="bootstrap", category="sandbox_lost", reason="sandbox_lost")
    assert str(cause_of_tool(made(None, effect=Effect.READ), FINAL, plain)) == (
        "managed_tool_dispatch_failed: stage=bootstrap effect=read category=sandbox_lost reason=sandbox_lost"
    )


def test_tries_ride_along():
    tries = Tries().plus("dispatch").plus("receipt").plus("dispatch")
    assert str(tries) == "dispatch=2,receipt=1"
    assert Tries.read(str(tries)) == tries
    assert (tries.of("dispatch"), tries.of("bootstrap")) == (2, 0)


@pytest.mark.parametrize("text", ["", "x", "a=b", "a=1,", "=1", "ghs token=1"])
def test_what_is_no_tries_is_none(text):
    assert Tries.read(text) == Tries()


def receipt(stdout=b"", *, code=0, signal=None, ended="itself", oom=False, truncated=False) -> ReceiptOf:
    return ReceiptOf(
        exit_code=None if signal else code, signal=signal, ended=ended, out_of_memory=oom, truncated=truncated,
        stdout=stdout, stderr=b"",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ended", "outcome"),
    [
        (receipt(), "succeeded"),
        (receipt(code=1), "failed"),
        (receipt(signal="SIGKILL"), "killed"),
        (receipt(ended="timeout", signal="SIGTERM"), "timed_out"),
        (receipt(ended="timeout", code=0), "timed_out"),
        (receipt(ended="cancelled"), "cancelled"),
    ],
)
def test_an_end_has_one_word(ended, outcome):
    assert outcome_of(ended) == outcome


def test_a_memory_limit_is_said():
    assert reason_of(receipt(signal="SIGKILL", oom=True)) == "out_of_memory"
    assert reason_of(receipt(signal="SIGKILL")) is None


def told(stdout: bytes, form="json", secrets=(), **more):
    return output_of(receipt(stdout, **more), form, secrets, inline=1000, store=lambda: pytest.fail("no store needed"))


@pytest.mark.parametrize(
    ("stdout", "value"),
    [(b'{"a": 1}', {"a": 1}), (b"null\n", None), (b'"\\ud83d\\ude00"', "\U0001f600"), (b"[[1]]", [[1]])],
)
def test_json_is_a_value(stdout, value):
    assert (told(stdout).value, told(stdout).reason) == (value, None)
    json.dumps(told(stdout).value)


@pytest.mark.parametrize("stdout", [b'{"a": 1e999}', b"[-1e999]", b'{"a": "\\ud800"}', b'[{"a": 1, "a": 2}]'])
def test_json_that_readers_read_differently_is_text(stdout):
    """Infinity is no JSON for a backend, half a letter ends the reader of some, a key twice means this or that."""
    output = told(stdout)
    assert (output.value, output.reason) == (stdout.decode(), "output_malformed")


@pytest.mark.parametrize("stdout", [b"", b"{", b"NaN", b"[Infinity]", b"[" * 500 + b"]" * 500, b"1" * 900])
def test_json_that_is_none_is_text(stdout):
    output = told(stdout)
    assert (output.value, output.reason) in {(stdout.decode(), "output_malformed"), (int("1" * 900), None)}


def test_a_tool_that_fails_owes_no_json():
    assert told(b"Traceback", code=1).reason is None


def test_secrets_are_masked_in_every_form():
    secret = "s3cr3t-value/with+signs"
    output = told(f"a {secret} b {base64.b64encode(secret.encode()).decode()}".encode(), "text", [secret]).value
    assert secret not in output
    assert base64.b64encode(secret.encode()).decode()[:8] not in output
    assert output.startswith("a ***")
    assert masker([])("ghp_0123456789012345678901234567890123456") == "ghp_0123456789012345678901234567890123456"


@pytest.mark.parametrize(
    "spelled", ["s3cr\\u0033t\\/va&lue", "s3cr3t\\/va&lue", "s3cr3t/va\\u0026lue", "\\u0073\\u0033cr3t/va&lue"]
)
def test_a_secret_is_masked_however_json_spells_it(spelled):
    """PHP writes ``\\/``, Go ``\\u0026``, and any letter may be written by its number."""
    output = told(f'{{"{spelled}": ["a {spelled} b"], "n": 1}}'.encode(), secrets=["s3cr3t/va&lue"])
    assert output.value == {"***": ["a *** b"], "n": 1}


def test_what_php_and_go_write_is_masked_in_a_text_too():
    for spelled in ("s3cr3t\\/va&lue", "s3cr3t/va\\u0026lue"):
        assert told(spelled.encode(), "text", secrets=["s3cr3t/va&lue"]).value == "***"


def test_letters_are_not_cut():
    assert decoded("aé".encode()[:2], cut=True) == "a"
    assert decoded("aé".encode()[:2], cut=False) == "a\ufffd"
    assert decoded(b"a\xffb", cut=False) == "a\ufffdb"
