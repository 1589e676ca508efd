import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.failures.classify import ALL_RULES, classify
from worker.failures.model import Category, Failure
from worker.failures.status import status_in
from worker.failures.text import KEPT, normalise


def judged(text: str) -> Category:
    return classify(Failure(operation="clone", stage="fetch", exit_code=128, text=text)).category


class TestNormalise:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("\x1b[31mfatal:\x1b[0m Early EOF", "fatal: early eof"),
            ("\x1b]8;;https://evil\x07fatal: x\x1b]0;t\x1b\\", "fatal: x"),
            ("\x9b1mfatal\u200b: x\x00", "fatal: x"),
            ("\\u001b[31mfatal: x", "fatal: x"),
            ("a\\nb\\\\nc\\r\\nd", "a\nb\nc\nd"),
            ('{\\"message\\": \\"x\\"}', '{"message": "x"}'),
            ("a &#xA; b", "a \n b"),
            ("a\t  \u00a0b", "a b"),
            ("Receiving objects:  13% (1283/9381), 4.21 MiB | 2.00 KiB/s\rfatal: early EOF", "\nfatal: early eof"),
            ("Receiving objects: 100% (503/503), 1.00 MiB | 2.00 MiB/s, done.\nfatal: x", "\nfatal: x"),
            ("remote: Counting objects: 503, done.", "remote: "),
            ("web-1  | 2026-01-02T03:04:05.123456789Z fatal: x", "fatal: x"),
            ("[2026-01-02 03:04:05,123] fatal: x", "fatal: x"),
            ("Cloning into 'early EOF'...", ""),
            ("repository 'https://host/early%20eof/503.git' not found", "repository 'url' not found"),
            ("loose object 0123503503abcdef is corrupt", "loose object hex is corrupt"),
            ("defaced effaced", "defaced effaced"),
        ],
    )
    def test_makes_text_plain(self, text, expected):
        assert normalise(text) == expected

    def test_keeps_head_and_tail(self):
        text = normalise("fatal: head\n" + "x" * 5_000_000 + "\nfatal: tail")
        assert text.startswith("fatal: head\n")
        assert text.endswith("\nfatal: tail")
        assert len(text) <= KEPT + 1

    def test_the_cut_joins_no_halves(self):
        half = "early e".rjust(KEPT // 2, "-")
        assert "early eof" not in normalise(half + "-" * KEPT + "of".ljust(KEPT // 2, "-"))

    @given(st.text(st.sampled_from("\x1b[]\\nru01b|:'/ %(),.aA5\r\n\x07"), max_size=400))
    def test_leaves_no_control_character(self, text):
        assert [char for char in normalise(text) if char != "\n" and not char.isprintable()] == []


class TestWhatHidesAMessage:
    @pytest.mark.parametrize(
        "text",
        [
            "fatal: unable to access 'https://h/r/': Could not resolve host: h",
            "\x1b[1;31mfatal: Could not\x1b[0m resolve host: h",
            "git-1  | fatal: Could not resolve host: h",
            "2026-01-02T03:04:05Z fatal: Could not resolve host: h",
            "remote: fatal: Could not resolve host: h",
            "Receiving objects:  50% (1/2)\rfatal: Could not resolve host: h",
            '{"stderr": "Cloning into \'x\'...\\nfatal: Could not resolve host: h\\n"}',
            "x" * 1_000_000 + "\nfatal: Could not resolve host: h",
            "fatal: Could not resolve host: h\n" + "x" * 1_000_000,
        ],
    )
    def test_does_not_hide_this_one(self, text):
        assert judged(text) is Category.TRANSIENT_NETWORK


class TestWhatFakesAMessage:
    @pytest.mark.parametrize(
        "text",
        [
            "Cloning into 'connection refused'...\nfatal: something else",
            "Receiving objects: 100% (503/503), done.\nfatal: something else",
            "remote: Enumerating objects: 429, done.\nfatal: something else",
            "fatal: something else with https://host/early%20eof?returned+error:503",
            "HEAD is now at 1234567 fix: connection reset by peer",
            "fatal: 5035035035035030000000000000000000000503 is odd",
            "line 503\nexit 500\npid 429",
            "HTTP code = 200\nfatal: something else",
            "returned error: 5031",
        ],
    )
    def test_does_not_fake_this_one(self, text):
        assert judged(text) is Category.UNKNOWN


class TestStatusIn:
    @pytest.mark.parametrize(
        ("text", "status"),
        [
            ("The requested URL returned error: 503", 503),
            ("error: RPC failed; HTTP 502 curl 22", 502),
            ("error: RPC failed; result=22, HTTP code = 504", 504),
            ("Received unexpected HTTP status: 500 Internal Server Error", 500),
            ("unexpected status from GET request to https://h/v2: 502 Bad Gateway", 502),
            ("Request failed with status code 500", 500),
            ('{"statusCode":400,"message":"x"}', 400),
            ("SandboxException: 504: b'upstream'", 504),
            ('409 Client Error for http+docker://localhost/x: Conflict ("y")', 409),
            ("[401] Unauthorized", 401),
            ("503", None),
            ("script.sh: 503: git: broken", None),
            ("(503/503)", None),
            ("returned error: 200", None),
            ("", None),
        ],
    )
    def test_reads_a_number_only_in_its_place(self, text, status):
        assert status_in(normalise(text)) == status


class TestTime:
    @pytest.mark.parametrize(
        "unit",
        [
            "\x1b[", "\x1b]", "\\", "a", "0", "http ", "://", "a://", "repository '", "container ", "loose object ",
            "cloning into '", "receiving objects: 1% (", "permission to ", "unexpected status from ", "2026-01-02 ",
            "\n", " ", "error: ", "\u0130", "exec: ", "manifest for ", "unable to write file ", "dial tcp lookup ",
            "sandbox ", "get url ", "timeout ", "connection ", "name ", "error: unable to create file ", "template ",
            "pull access denied for ", "cannot lock ref ", "[remote rejected] ", "status ", "(503", "AaAa", "Aa",
            "dépôt '", "松散对象 ", "\\\\n", "\\u001b[", "##[", "#1 1.1 ", "| ", '{"code": ', "[[[[", "((((",
        ],
    )  # fmt: skip
    def test_a_hostile_megabyte_is_judged_within_a_second_or_two(self, unit):
        text = unit * (1_000_000 // len(unit))
        start = time.process_time()
        judged(text)
        assert time.process_time() - start < 2.5

    def test_ordinary_texts_take_well_under_a_millisecond(self):
        text = "remote: Enumerating objects: 5, done.\nfatal: something that no rule has ever heard of\n" * 4
        judged(text)
        start = time.process_time()
        for _ in range(200):
            judged(text)
        assert (time.process_time() - start) / 200 < 1e-3

    @given(
        st.lists(
            st.sampled_from([*(rule.text.pattern[:40] for rule in ALL_RULES if rule.text), "\x1b[", "\\n", "503 "])
        )
    )
    def test_pieces_of_rules_in_any_order_are_judged(self, pieces):
        assert judged(" ".join(pieces)) in Category
