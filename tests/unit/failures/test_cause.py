import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.failures.cause import MAX_LENGTH, Cause
from worker.failures.model import Category, EndedBy
from worker.failures.vocabulary import CODES, INTEGERS, KEYS, MEMBERS, OTHER

CAPTURE = "remote_workspace_capture_failed: stage=archive exit=128 program=git helper_exit=1"
TOKENS = (
    "ghs_16C7e42F292c6912E7710c838347Ae178B4a",
    "AKIAIOSFODNN7EXAMPLE",
    "hf_abcdefghijklmnopqrstuvwxyz",
    "0123456789abcdef0123456789abcdef",
)


def values_of(key: str) -> st.SearchStrategy[object]:
    words = st.sampled_from([*sorted(map(str, MEMBERS.get(key, ()))), OTHER])
    return st.sampled_from(INTEGERS[key]) | st.just(OTHER) if key in INTEGERS else words


def parts(nested: st.SearchStrategy[Cause | None]) -> st.SearchStrategy[Cause]:
    fields = st.sets(st.sampled_from(KEYS)).flatmap(lambda keys: st.fixed_dictionaries({k: values_of(k) for k in keys}))
    return st.builds(
        lambda code, below, values: Cause.of(code, below, **values), st.sampled_from(sorted(CODES)), nested, fields
    )


CAUSES = parts(st.none() | parts(st.none()))


class TestExamplesOfTheDesign:
    @pytest.mark.parametrize(
        ("cause", "line"),
        [
            (
                Cause.of("remote_workspace_capture_failed", helper_exit=1, program="git", exit=128, stage="archive"),
                CAPTURE,
            ),
            (
                Cause.of("remote_workspace_operation_failed", Cause.parse(CAPTURE), operation="capture", exit=1),
                f"remote_workspace_operation_failed: operation=capture exit=1; {CAPTURE}",
            ),
            (
                Cause.of("managed_tool_outcome_unknown", effect="write", stage="dispatch"),
                "managed_tool_outcome_unknown: stage=dispatch effect=write",
            ),
            (
                Cause.of("invalid_request", reason="secret_binding", field="credential"),
                "invalid_request: field=credential reason=secret_binding",
            ),
            (Cause.of("cancelled"), "cancelled"),
        ],
    )
    def test_hold_exactly(self, cause, line):
        assert str(cause) == line
        assert Cause.parse(line) == cause

    @pytest.mark.parametrize("stage", ["helper", "archive", "publish"])
    def test_every_stage_of_the_helper_is_known(self, stage):
        line = f"remote_workspace_capture_failed: stage={stage} code=ENOENT exit=128 signal=SIGTERM syscall=spawn"
        line += " killed=true program=git name=OSError reason=other helper_exit=1"
        assert str(Cause.parse(line)) == line


class TestOf:
    @pytest.mark.parametrize(
        ("given", "written"),
        [
            ({"exit": 300}, "exit=other"),
            ({"exit": -9}, "exit=other"),
            ({"exit": True}, "exit=other"),
            ({"http": 42}, "http=other"),
            ({"program": "/usr/bin/git"}, "program=other"),
            ({"program": TOKENS[0]}, "program=other"),
            ({"reason": 7}, "reason=other"),
            ({"killed": True}, "killed=true"),
            ({"killed": False}, "killed=false"),
            ({"category": Category.NOT_FOUND}, "category=not_found"),
            ({"ended_by": EndedBy.DEADLINE}, "ended_by=deadline"),
            ({"exception": "httpx.ConnectError"}, "exception=ConnectError"),
            ({"exception": "evil." + TOKENS[0]}, "exception=other"),
            ({"errno": "ENOSPC", "signal": "SIGKILL"}, "signal=SIGKILL errno=ENOSPC"),
            ({"stage": None, "exit": 1}, "exit=1"),
        ],
    )
    def test_mends_values(self, given, written):
        assert str(Cause.of("clone_failed", **given)) == f"clone_failed: {written}"

    def test_unknown_code_is_other(self):
        assert str(Cause.of("ghs_secret", exit=1)) == "other: exit=1"

    def test_unknown_key_is_our_mistake(self):
        with pytest.raises(ValueError, match="unknown key text"):
            Cause.of("clone_failed", text="hello")

    def test_keeps_one_cause_below(self):
        third = Cause.of("worker_lost")
        line = str(Cause.of("clone_failed", Cause.of("sandbox_failed", third, exit=1), exit=2))
        assert line == "clone_failed: exit=2; sandbox_failed: exit=1"

    def test_too_long_loses_what_is_below_first(self):
        longest = {key: max(map(str, MEMBERS.get(key) or INTEGERS[key]), key=len) for key in KEYS}
        longest |= {key: INTEGERS[key][-1] for key in INTEGERS}
        full = Cause.of("clone_failed", **longest)
        assert len(str(full)) <= MAX_LENGTH
        assert full.fields[0][0] == "operation"
        assert Cause.of("clone_failed", full, **longest) == full

    @given(st.text(), st.dictionaries(st.sampled_from(KEYS), st.text() | st.integers() | st.booleans() | st.none()))
    def test_any_value_makes_a_line_that_parses(self, code, fields):
        cause = Cause.of(code, **fields)
        assert Cause.parse(str(cause)) == cause


class TestParse:
    @given(CAUSES)
    def test_reads_what_was_written(self, cause):
        line = str(cause)
        assert Cause.parse(line) == cause
        assert line.isascii()
        assert line.isprintable()
        assert len(line) <= MAX_LENGTH

    @pytest.mark.parametrize(
        "line",
        [
            "",
            "nonsense: exit=1",
            f"fatal: {CAPTURE}",
            f" {CAPTURE}",
            f"{CAPTURE} ",
            f"{CAPTURE}\n",
            f"{CAPTURE}\r\n",
            f"{CAPTURE}\nclone_failed: exit=1",
            f"{CAPTURE}\x00",
            "clone_failed:",
            "clone_failed: ",
            "clone_failed:exit=1",
            "clone_failed: exit=1  program=git",
            "clone_failed: exit=1\tprogram=git",
            "clone_failed: program=git exit=1",
            "clone_failed: exit=1 exit=1",
            "clone_failed: exit=1 exit=2",
            "clone_failed: exit=01",
            "clone_failed: exit=+1",
            "clone_failed: exit=-1",
            "clone_failed: exit=256",
            "clone_failed: exit=1_0",
            "clone_failed: exit=\u0661",
            "clone_failed: exit=",
            "clone_failed: exit",
            "clone_failed: =1",
            "clone_failed: exit=1=2",
            "clone_failed: path=x",
            "clone_failed: program=/usr/bin/git",
            "clone_failed: program=git;rm",
            "clone_failed: program=GIT",
            "clone_failed: program=g\u0456t",
            "clone_failed: exit=1;worker_lost",
            "clone_failed: exit=1; ",
            "clone_failed: exit=1; worker_lost; worker_lost",
            "Clone_failed: exit=1",
            "clone_failed: killed=True",
            *(f"clone_failed: {key}={token}" for token in TOKENS for key in ("program", "reason", "name", "stage")),
            *(f"{token}: exit=1" for token in TOKENS),
            f"clone_failed: exit=1; {'x' * 512}",
        ],
    )
    def test_drops_whole_what_does_not_match(self, line):
        assert Cause.parse(line) is None

    @given(CAUSES, st.data())
    def test_one_changed_character_never_leaks(self, cause, data):
        line = str(cause)
        place = data.draw(st.integers(0, len(line) - 1))
        forged = line[:place] + data.draw(st.characters()) + line[place + 1 :]
        read = Cause.parse(forged)
        assert read is None or str(read) == forged

    @given(st.text(max_size=600))
    def test_text_is_dropped_or_is_a_cause(self, line):
        read = Cause.parse(line)
        assert read is None or str(read) == line

    @pytest.mark.parametrize("unit", ["a", "exit=1 ", "clone_failed: ", "; ", "=", "\n"])
    def test_ten_megabytes_are_dropped_at_once(self, unit):
        line = unit * (10_000_000 // len(unit))
        start = time.process_time()
        assert Cause.parse(line) is None
        assert time.process_time() - start < 0.1


class TestConstructor:
    @pytest.mark.parametrize(
        "arguments",
        [
            ("nonsense",),
            ("clone_failed", (("exit", 1), ("exit", 1))),
            ("clone_failed", (("program", "git"), ("exit", 1))),
            ("clone_failed", (("path", "git"),)),
            ("clone_failed", (("program", "make"),)),
            ("clone_failed", (("exit", "1"),)),
            ("clone_failed", (("attempt", 0),)),
        ],
    )
    def test_refuses_what_breaks_the_grammar(self, arguments):
        with pytest.raises(ValueError, match="cause"):
            Cause(*arguments)

    def test_refuses_a_third_part(self):
        with pytest.raises(ValueError, match="two parts"):
            Cause("clone_failed", (), Cause("worker_lost", (), Cause("expired")))
