"""The launcher's answers and the shell text we send: a hostile sandbox is not believed, a request runs nothing."""

import base64
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worker.sandboxes.hosted import answer, scripts

NONCE = "0123456789abcdef" * 2


def b64(data):
    return base64.encodebytes(data).decode()


def line(*, how="itself", code="0", sent="-", out=0, err=0, nonce=NONCE):
    return f"sandferry {nonce} {how} {code} {sent} {out} {err}\n"


class TestAnswer:
    @given(st.binary(max_size=300), st.binary(max_size=300), st.integers(0, 255))
    def test_both_streams_and_the_code(self, out, err, code):
        parsed = answer.parse(
            line(code=str(code), out=len(out), err=len(err)) + b64(out) + ".\n" + b64(err) + ".\n", NONCE
        )
        assert (parsed.how, parsed.code, parsed.sent) == ("itself", code, None)
        assert (parsed.out, parsed.err) == (out, err)

    def test_what_a_login_shell_printed_before(self):
        text = "motd\nsandferry fake\n" + line(nonce="f" * 32) + ".\n.\n" + line(code="3") + ".\n.\n"
        assert answer.parse(text, NONCE).code == 3

    def test_carriage_returns(self):
        assert answer.parse((line(out=1) + b64(b"x") + ".\n.\n").replace("\n", "\r\n"), NONCE).out == b"x"

    def test_a_large_stream_is_left_out(self):
        parsed = answer.parse(line(out=10**9) + ".\n.\n", NONCE)
        assert (parsed.out_size, parsed.out) == (10**9, b"")

    def test_more_than_was_announced_is_dropped(self):
        assert answer.parse(line(out=1) + b64(b"xyz") + ".\n.\n", NONCE).out == b"x"

    @pytest.mark.parametrize(
        "text",
        [
            "",
            line(),
            line() + ".\n",
            line(nonce="f" * 32) + ".\n.\n",
            line(how="fine") + ".\n.\n",
            line(code="1000") + ".\n.\n",
            line(sent="SIGUSR1") + ".\n.\n",
            line(out=-1) + ".\n.\n",
            line(out="1" * 30) + ".\n.\n",
            line(out=3) + "!!!!\n.\n.\n",
            line(out=3) + "YQ\n.\n.\n",
        ],
    )
    def test_nonsense(self, text):
        assert answer.parse(text, NONCE) is None


text_of_a_shell = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=40)


@settings(max_examples=60, deadline=None)
@given(st.lists(text_of_a_shell, min_size=1, max_size=5), text_of_a_shell)
def test_arguments_and_environment_survive_the_shell(argv, value):
    script = 'eval "$JOB"; printf "%s\\0" "$VALUE" "$@"'
    env = {"PATH": "/usr/bin:/bin", "JOB": scripts.job(argv, {"VALUE": value})}
    done = subprocess.run(["/bin/sh", "-c", script], env=env, capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == [value, *argv]
