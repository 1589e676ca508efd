import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worker.failures.classify import ALL_RULES
from worker.failures.shapes import compiled, literal_of, shape

ALTERNATIVES = sorted({alternative for rule in ALL_RULES if rule.text for _, alternative in rule.text._tests} - {None})


class TestLiteral:
    @pytest.mark.parametrize(
        ("pattern", "literal"),
        [
            ("early eof", "early eof"),
            (r"could(?: not|n't) resolve host", " resolve host"),
            (r"returned error: 30[1278](?!\d)", "returned error: 30"),
            (r"file ?name too long", "name too long"),
            (r"\bcurl:? \(?(?:5|6)\b", "curl"),
            (r"rule violations?", "rule violation"),
            (r"a+bc", "bc"),
            (r"sslerror\(", "sslerror("),
            (r"x{0,3}yz", "yz"),
            (r"one|other", ""),
            (r"^(?:remote|error): not found", ": not found"),
            (r"[abc]", ""),
        ],
    )
    def test_is_the_longest_text_of_every_match(self, pattern, literal):
        assert literal_of(pattern) == literal

    def test_an_unbalanced_pattern_is_an_error(self):
        with pytest.raises(re.error):
            literal_of("a(b")

    @pytest.mark.parametrize("alternative", ALTERNATIVES)
    def test_every_match_of_a_rule_contains_it(self, alternative):
        literal = literal_of(alternative)

        @settings(max_examples=20, deadline=None)
        @given(st.from_regex(compiled(alternative)))
        def check(text: str) -> None:
            assert literal in text

        check()

    def test_nearly_every_alternative_has_one(self):
        bare = [alternative for alternative in ALTERNATIVES if len(literal_of(alternative)) < 3]
        assert len(bare) <= len(ALTERNATIVES) // 100


class TestShape:
    @pytest.mark.parametrize("text", ["an early eof", "curl 56 broke", "503 (late)"])
    def test_one_wording_is_enough(self, text):
        assert shape("early eof", r"curl \d\d", r"\(late\)").search(text)

    @pytest.mark.parametrize("text", ["", "early  eof", "curl x", "late"])
    def test_none_is_none(self, text):
        assert not shape("early eof", r"curl \d\d", r"\(late\)").search(text)

    def test_plain_signs_are_plain(self):
        assert shape("a-b #1 & ~c").search("x a-b #1 & ~c y")

    def test_lines_have_beginnings_and_ends(self):
        assert shape(r"^killed$").search("a\nkilled\nb")
        assert not shape(r"^killed$").search("was killed\n")
