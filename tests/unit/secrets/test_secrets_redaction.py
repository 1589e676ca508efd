"""Redaction: known secrets in every dress, token shapes, chunk borders, hostile text."""

import base64
import html
import itertools
import json
import pickle
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worker.secrets.redaction import TAIL_LIMIT, Redactor, strip_controls, tail
from worker.secrets.streams import HELD_LIMIT

TOK = "TOK-EXAMPLE-0123456789"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
GHS_LONG = "ghs_" + "eyJhbGciOiJSUzI1NiJ9" + "." + "Ab1_-" * 90 + "." + "x" * 43
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nq83vEjRWeJq83vEjRWeJ\n-----END RSA PRIVATE KEY-----"


def streamed(redactor, parts):
    stream = redactor.stream()
    return "".join([stream.feed(part) for part in parts]) + stream.flush()


class TestReportedCases:
    """The redaction cases that people reported of comparable systems, against our code."""

    def test_03_git_trace_prints_the_url(self):
        line = f"10:00:00 git.c:444 trace: built-in: git remote-http 'http://x-access-token:{TOK}@127.0.0.1:1/r.git'"
        assert TOK not in Redactor([TOK]).redact(line)
        assert TOK not in Redactor().redact(line)

    def test_05_secret_cut_by_any_two_chunk_borders(self):
        text = f"key={TOK} end {TOK[:5]}"
        redactor = Redactor([TOK])
        for first, second in itertools.combinations_with_replacement(range(len(text) + 1), 2):
            parts = [text[:first], text[first:second], text[second:]]
            assert streamed(redactor, parts) == "key=*** end TOK-E"

    def test_05_nothing_but_a_possible_prefix_is_held_back(self):
        stream = Redactor([TOK]).stream()
        assert stream.feed("plain text TO") == "plain text "
        assert stream.feed("NE ") == "TONE "
        assert stream.feed("K " + TOK[:-1]) == "K "
        assert stream.flush() == TOK[:-1]

    def test_06_every_line_of_a_secret_in_text_lines_and_json(self):
        secret = "== START ==\nrow-one-qqqq\nrow-two-wwww\n== STOP =="
        log = f"signing_secret={secret}\nnext"
        redactor = Redactor([secret])
        for out in (
            redactor.redact(log),
            "\n".join(redactor.redact(line) for line in log.split("\n")),
            redactor.redact(json.dumps({"m": log})),
            redactor.redact(log.replace("\n", "\r\n")),
        ):
            assert not any(line in out for line in secret.split("\n"))
            assert "next" in out

    @pytest.mark.parametrize("secrets", list(itertools.permutations(["abcd-prod", "abcd-prod-777x", "", "1"])))
    def test_07_empty_short_and_nested_values(self, secrets):
        redactor = Redactor(secrets)
        assert redactor.redact("job ok") == "job ok"
        assert redactor.redact("exit code 1") == "exit code 1"
        assert redactor.redact("use abcd-prod-777x") == "use ***"
        assert redactor.redact("use abcd-prod") == "use ***"

    def test_10_masked_before_shortened(self):
        token = "TOK-" + "A1b2C3d4" * 5
        text = "clone failed for token " + token
        for limit in range(len(text) + 3):
            out = tail(text, Redactor([token]), limit)
            assert not any(token[i : i + 8] in out for i in range(len(token) - 7))
            assert len(out.encode()) <= limit

    def test_10_output_that_ends_in_the_middle_of_a_token(self):
        token = "TOK-" + "A1b2C3d4" * 5
        assert tail("key " + token[:-6], Redactor([token])) == "key ***"
        assert tail("key " + token[:8], Redactor([token])) == "key ***"
        assert tail("key TOK-A1b", Redactor([token])) == "key TOK-A1b"


class TestForms:
    @pytest.mark.parametrize("secret", [TOK, "pä$$ wörd/+?&=%", 'quo"te\\back\tslash', "s3cr3t", GHS_LONG])
    @pytest.mark.parametrize("before", ["", "x", "xy", "xyz", "x-access-token:"])
    def test_base64_at_every_alignment(self, secret, before):
        for after in ("", "z", "zz"):
            plain = f"{before}{secret}{after}".encode()
            for text in (base64.b64encode(plain).decode(), base64.urlsafe_b64encode(plain).decode()):
                out = Redactor([secret]).redact(f"header: {text} end")
                assert "***" in out
                assert out.startswith("header: ")
                assert out.endswith(" end")
                start = -(-len(before.encode()) * 8 // 6) + 4
                assert text[start : start + 6] not in out

    @pytest.mark.parametrize("secret", ["pä$$ wörd/+?&=%", 'quo"te\\back\tslash'])
    def test_url_and_json_forms(self, secret):
        forms = [quote(secret), quote(secret, safe=""), quote_plus(secret), quote(secret, safe="").lower()]
        forms += [json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], secret]
        for form in forms[:3] + forms[4:]:
            assert Redactor([secret]).redact(f"<{form}>") == "<***>"

    def test_lower_case_percent_encoding(self):
        assert Redactor(["a/b+c=dd"]).redact("a%2fb%2bc%3ddd") == "***"

    def test_overlapping_secrets_leave_no_rest(self):
        assert Redactor(["abcdefgh", "efghijkl"]).redact("xabcdefghijklx") == "x***x"

    def test_a_redactor_is_not_pickled_and_shows_nothing(self):
        redactor = Redactor([TOK])
        assert TOK not in repr(redactor)
        with pytest.raises(TypeError):
            pickle.dumps(redactor)


SHAPES = [
    (f"token {GHS_LONG} end", "token *** end"),
    ("ghp_abcd", "***"),
    ("x=gho_16C7e42F292c6912E7710c838347Ae178B4a,", "x=***,"),
    ("ghu_AAAAbbbb ghr_AAAAbbbb", "*** ***"),
    ("github_pat_11AAAAA_bbbbbb", "***"),
    ("glpat-AbCdEf123456", "***"),
    ("AKIAIOSFODNN7EXAMPLE", "***"),
    ("xoxb-1234-5678-abcdef", "***"),
    ("key sk-proj-abcdefghijkl_mnop end", "key *** end"),
    ("hf_abcdefghijklmnopqrstuvwx", "***"),
    ("npm_abcdefghijklmnopqrstuvwxyz0123456789", "***"),
    (f"jwt {JWT}.", "jwt ***"),
    (f"session_{JWT}", "session_***"),
    (f"a\n{PEM}\nb", "a\n***\nb"),
    (PEM.replace("\n", "\\n"), "***"),
    ("-----BEGIN PRIVATE KEY-----\nMIIEvQ\nnever ends", "***"),
    ("AUTHORIZATION: basic eDp5eno=", "AUTHORIZATION: ***"),
    ("authorization: Bearer abc.def", "authorization: ***"),
    ('{"Authorization": "token abcdef"}', '{"Authorization": "***"}'),
    ("http.extraheader=AUTHORIZATION: basic eDp5eno= more", "http.extraheader=AUTHORIZATION: *** more"),
    ("https://user:p@ss@host/x and git://me@h/y", "https://***@host/x and git://***@h/y"),
    ("https://host/x?a=1&access_token=abc&b=2#c", "https://host/x?a=1&access_token=***&b=2#c"),
    ("https://host/x?token=abc", "https://host/x?token=***"),
    ("tokenghp_abcdefghijklmnopqrstuvwxyz0123456789", "token***"),
    ("hvs.CAESIabcdefgh glft-abcdefgh whsec_abcdefgh", "*** *** ***"),
    ("ATBBabcdefghijklmnop12345678", "***"),
    ("PASSWORD=hunter2hunter2 next", "PASSWORD=*** next"),
    ('{"password": "hunter2hunter2"}', '{"password": "***"}'),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key = ***"),
    ("X-Auth-Token: abcdefgh12345", "X-Auth-Token: ***"),
    ("https://s3/x?X-Amz-Signature=abc&X-Amz-Date=1", "https://s3/x?X-Amz-Signature=***&X-Amz-Date=1"),
]
INNOCENT = [
    "job ok",
    "exit code 128",
    "fatal: repository 'https://github.com/acme/site/' not found",
    "risk-averse task-runner disk-usage-report-of-today",
    "highs_and_lows_of_life",
    "https://host/path@2x/a.png?page=2&sort=name",
    "mail me@example.org",
    "eyJust a word. And another. And more.",
    "npm_config_registry hf_hub_download",
    "0123456789abcdef0123456789abcdef01234567",
    "error: 3 files changed, 4 insertions(+)",
]


class TestHiddenForms:
    SECRET = 'v1.abcdef-0123456789+/XYZ=="q'

    @pytest.mark.parametrize(
        "written",
        [
            html.escape(SECRET),
            SECRET.encode().hex(),
            SECRET.encode().hex().upper(),
            quote(quote(SECRET, safe=""), safe=""),
        ],
    )
    def test_other_ways_to_write_it(self, written):
        assert Redactor([self.SECRET]).redact(f"a {written} b") == "a *** b"

    @pytest.mark.parametrize("unseen", ["\u200b", "\u00ad", "\ufeff", "\u2060", "\x1b[31m", "\b"])
    def test_characters_that_nobody_sees_do_not_split_it(self, unseen):
        text = self.SECRET[:10] + unseen + self.SECRET[10:]
        assert tail(f"a {text} b", Redactor([self.SECRET])) == "a *** b"


class TestShapes:
    @pytest.mark.parametrize(("text", "expected"), SHAPES)
    def test_masked(self, text, expected):
        out = Redactor().redact(text)
        for scheme in ("basic ", "Bearer ", "token "):
            out = out.replace(f": {scheme}***", ": ***").replace(f'"{scheme}***', '"***')
        assert out == expected

    @pytest.mark.parametrize("text", INNOCENT)
    def test_left_alone(self, text):
        assert Redactor().redact(text) == text

    @pytest.mark.parametrize("text", [text for text, _ in SHAPES] + INNOCENT)
    def test_redacting_twice_changes_nothing_more(self, text):
        once = Redactor().redact(text)
        assert Redactor().redact(once) == once


PIECES = st.sampled_from(
    [
        *(TOK, TOK[:7], TOK[-4:], "ghs_", "gh", "abc", "Ab12Cd34Ef56Gh78", " ", "\n", ".", "eyJ", "://", "@", "?", "&"),
        *("token=", "sk-", "k-", "-----BEGIN A-----", "-----END A-----", "-----", "authorization: ", "basic ", "***"),
        *('"', "line-one-of-it", "line-one-of-it\nline-two-of-it", "abab", "\u0130", "é"),
    ]
)


class TestStream:
    @settings(max_examples=600, deadline=None)
    @given(st.lists(PIECES, max_size=14).map("".join), st.lists(st.integers(0, 200), max_size=6))
    def test_equals_the_whole_wherever_it_is_cut(self, text, cuts):
        redactor = Redactor([TOK, "line-one-of-it\nline-two-of-it", "ababab"])
        borders = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
        parts = [text[a:b] for a, b in itertools.pairwise(borders)]
        assert streamed(redactor, parts) == redactor.redact(text)
        assert streamed(redactor, text) == redactor.redact(text)

    @pytest.mark.parametrize(("text", "expected"), SHAPES)
    def test_shapes_one_character_at_a_time(self, text, expected):
        redactor = Redactor()
        assert streamed(redactor, text) == redactor.redact(text)

    @pytest.mark.parametrize(
        ("parts", "expected"),
        [
            (["a ghs_" + "x" * HELD_LIMIT, "x" * HELD_LIMIT + " same line", "\nnext"], "a ***\nnext"),
            (["-----BEGIN A-----\n" + "x\n" * HELD_LIMIT, "yy\n-----EN", "D A-----", "\nnext"], "***\nnext"),
            (["-----BEGIN A-----\n" + "x\n" * HELD_LIMIT, "secret"], "***"),
        ],
    )
    def test_what_is_held_is_bounded_and_masked_when_it_grows(self, parts, expected):
        assert streamed(Redactor(), parts) == expected


class TestTail:
    def test_strips_terminal_control(self):
        text = "\x1b]0;title\x07\x1b[31mred\x1b[0m\x1b(B \x1bPq#0\x1b\\ok\r\nprogress\rdone\x00\x08\x9b\u202e\tx\n"
        assert strip_controls(text) == "red ok\nprogress\ndone\tx\n"

    def test_an_unended_escape_does_not_hide_the_next_line(self):
        assert strip_controls("a\x1b]0;never\nb\x1b") == "a\nb"

    def test_a_token_split_by_an_escape_is_masked(self):
        assert tail("x gh\x1b[0ms_abcdef y", Redactor()) == "x *** y"
        assert tail(f"x {TOK[:9]}\x00{TOK[9:]} y", Redactor([TOK])) == "x *** y"

    def test_keeps_the_end_on_a_character_border(self):
        assert tail("é" * 10, Redactor(), 5) == "éé"
        assert len(tail("x" * 20_000, Redactor())) == TAIL_LIMIT
        assert tail(b"\xffab\n", Redactor()) == "\ufffdab\n"
        assert tail("abc", Redactor(), 0) == ""

    @given(st.text(max_size=200), st.integers(0, 60))
    def test_never_longer_than_its_limit_and_free_of_control(self, text, limit):
        out = tail(text, Redactor([TOK]), limit)
        assert len(out.encode()) <= limit
        assert not any(ord(char) < 32 and char not in "\n\t" for char in out)


HOSTILE = ["ghs_", "ghs_ab ", "a@a@a@", "eyJ.eyJ.", "eyJ", "://", "x://y:z@", "-----BEGIN A-----", "-----BEGIN "]
HOSTILE += ["authorization: ", "bearer ", "?token=", "&key=a", TOK[:-1], "a", "\x1b]", "\x1b[", "AKIA", "; ", "\n"]


def seconds(work, text):
    start = time.process_time()
    work(text)
    return time.process_time() - start


@pytest.mark.parametrize("pattern", HOSTILE)
def test_time_is_linear_in_hostile_text(pattern):
    """1 MB against 256 kB: four times the text, four times the time; sixteen would be quadratic."""
    redactor = Redactor([TOK, "a" * 600 + "b"])

    def work(text):
        tail(text, redactor)
        streamed(redactor, [text[i : i + 8192] for i in range(0, len(text), 8192)])

    small, large = (pattern * (size // len(pattern)) for size in (1 << 18, 1 << 20))
    least = min(seconds(work, small) for _ in range(3))
    assert seconds(work, large) < 10 * max(least, 0.02)
