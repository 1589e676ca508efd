"""The script's answer comes out of a sandbox: what does not fit is not believed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.clone.answer import PROGRAMS, REFUSALS, STAGES, Broken, Delivered, asked_elsewhere, broken, delivered
from tasks.clone.repository import parse_url

ID = "0123456789abcdef" * 2 + "01234567"
GOOD = {"adopted": "no", "commit": ID, "ref": "refs/heads/main", "tree": ID, "kibibytes": "12", "done": "yes"}


def said(**lines: str) -> bytes:
    return "".join(f"{key} {value}\n" for key, value in (GOOD | lines).items()).encode()


def test_a_finished_clone_is_read():
    assert delivered(said()) == Delivered(commit=ID, ref="refs/heads/main", tree=ID, bytes=12 * 1024, adopted=False)


def test_a_branch_may_start_with_a_dash_as_its_name_is_in_full():
    assert delivered(said(ref="refs/heads/-x")).ref == "refs/heads/-x"


def test_none_is_none():
    done = delivered(said(commit="none", ref="none", adopted="yes"))
    assert (done.commit, done.ref, done.adopted) == (None, None, True)


@pytest.mark.parametrize(
    "lines",
    [
        {"done": "no"},
        {"adopted": "maybe"},
        {"commit": "ghs_token"},
        {"commit": ID + "0"},
        {"commit": ""},
        {"ref": "main"},
        {"ref": "refs/heads/a b"},
        {"ref": "refs/heads/a..b"},
        {"ref": "refs/heads/" + "a" * 245},
        {"ref": "refs/remotes/x"},
        {"tree": "none"},
        {"tree": ID.upper()},
        {"kibibytes": "-1"},
        {"kibibytes": "1" * 13},
        {"kibibytes": "\u0661"},
    ],
)
def test_what_does_not_fit_is_not_believed(lines):
    assert delivered(said(**lines)) is None


def test_a_break_is_read():
    assert broken(b"stage layout\nstage lfs\nprogram git_lfs\nexit 2\n") == Broken(
        stage="lfs", program="git_lfs", exit_code=2, reason=None
    )
    assert broken(b"stage rename\nrefused destination_taken\n").reason == "destination_taken"


@given(
    st.binary(max_size=200)
    | st.text(max_size=100).map(lambda text: f"stage {text}\nrefused {text}\nexit {text}".encode())
)
def test_nothing_of_a_strange_answer_gets_through(stdout):
    facts = broken(stdout)
    assert facts.stage in STAGES
    assert facts.program in PROGRAMS
    assert facts.reason is None or facts.reason in REFUSALS
    assert delivered(b"stage x\n" + stdout) is None


@pytest.mark.parametrize(
    ("said", "elsewhere"),
    [
        ("fatal: could not read Username for 'https://evil.example': terminal prompts disabled", True),
        ("fatal: could not read Username for 'https://git.example:8443': terminal prompts disabled", True),
        ("fatal: could not read Username for 'http://git.example': terminal prompts disabled", True),
        ("fatal: could not read Password for 'https://x@evil.example': terminal prompts disabled", True),
        ("Git credentials for https://evil.example/o/r.git/info/lfs not found:", True),
        ("fatal: could not read Username for 'https://git.example': terminal prompts disabled", False),
        ("fatal: could not read Password for 'https://x@GIT.example': terminal prompts disabled", False),
        (
            "could not read Username for 'https://evil.example'\ncould not read Username for 'https://git.example'",
            False,
        ),
        ("fatal: Authentication failed for 'https://git.example/o/r/'", False),
        ("", False),
    ],
)
def test_who_asked_for_a_credential(said, elsewhere):
    assert asked_elsewhere(said, parse_url("https://git.example/o/r")) is elsewhere
