import json
import time

import pytest
from typer.testing import CliRunner

from tests.corpus.entries import ENTRIES, HERE
from worker.cli import app
from worker.failures.cause import Cause

runner = CliRunner()
SECRET = "ghs_" + "s" * 36


def explain(*args: str, text: str | bytes = "") -> str:
    result = runner.invoke(app, ["explain", *args], input=text)
    assert result.exit_code == 0, result.output
    return result.stdout


def answers(text: str | bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in runner.invoke(app, ["explain", "--jsonl"], input=text).stdout.splitlines()]


def parts(output: str) -> dict[str, str]:
    return {line[:10].strip(): line[10:] for line in output.splitlines()}


class TestForPeople:
    def test_says_all_there_is_to_say(self):
        told = parts(explain("fatal: unable to access 'https://h/': The requested URL returned error: 503"))
        assert told["category"] == "transient_server"
        assert told["reason"] == "server_error"
        assert told["retry"] == "yes, after 3 s, then 9 s (3 attempts within 300 s)"
        assert told["rule"].startswith("http_server_error: ")
        assert told["advice"].endswith(".")
        assert told["cause"] == "clone_failed: stage=clone category=transient_server reason=server_error"

    def test_reads_standard_input(self):
        assert parts(explain(text="tar: x: file changed as we read it"))["category"] == "operation_in_progress"

    def test_bytes_that_are_no_text_do_no_harm(self):
        assert parts(explain(text=b"\xff\xfe fatal: early EOF"))["category"] == "transient_network"

    def test_facts_outrank_text(self):
        told = parts(explain("Connection refused", "--exit-code", "137", "--provider", "docker"))
        assert told["category"] == "resource_exhausted"
        assert "container's" in told["advice"]

    @pytest.mark.parametrize(("age", "category"), [("1", "token_replication"), ("3600", "not_found")])
    def test_a_minted_credential_is_judged_by_its_age(self, age, category):
        args = ("--credential", "minted", "--credential-age", age)
        assert parts(explain("remote: Repository not found.", *args))["category"] == category

    def test_a_minted_credential_is_fresh_unless_told_otherwise(self):
        assert (
            parts(explain("--credential", "minted", "--http-status", "404", text=""))["category"] == "token_replication"
        )

    def test_a_full_disk_is_looked_at_once_more_in_copy_back(self):
        told = parts(explain("--operation", "copy_back", text="tar: x: No space left on device"))
        assert told["retry"] == "no: waiting does not mend it; the job looks again after 30 s"
        assert parts(explain(text="fatal: write error: No space left on device"))["retry"] == "no"

    def test_what_nobody_knows_is_not_retried(self):
        told = parts(explain(text="something else"))
        assert (told["category"], told["retry"], told["rule"][:5]) == ("unknown", "no", "none:")

    @pytest.mark.parametrize(
        "text", [f"fatal: unable to access 'https://x:{SECRET}@h/': Could not resolve host", SECRET]
    )
    def test_nothing_of_the_text_is_repeated(self, text):
        output = explain("--provider", "docker", text=text)
        assert SECRET not in output
        cause = parts(output)["cause"]
        assert str(Cause.parse(cause)) == cause

    def test_a_credential_that_is_none_is_refused(self):
        result = runner.invoke(app, ["explain", "--credential", "borrowed", "x"])
        assert result.exit_code == 2
        assert "none, static or minted" in result.output
        assert "borrowed" not in result.output


class TestJsonl:
    def test_answers_each_line_with_one_line(self):
        lines = [{"id": 7, "text": "early EOF"}, {"id": "b", "text": "", "http_status": 429}, {"text": "x", "id": None}]
        told = [tuple(answer.values()) for answer in answers("\n".join(map(json.dumps, lines)) + "\n\n")]
        assert told == [
            (7, "transient_network", True, 3.0, "hung_up", "hung_up"),
            ("b", "rate_limited", True, 3.0, "http_rate_limit", "rate_limit"),
            (None, "unknown", False, None, "none", "unknown"),
        ]
        assert list(answers('{"text": "x"}')[0]) == ["id", "category", "retry", "countdown", "rule", "reason"]

    @pytest.mark.parametrize("file", ["failures.jsonl", "reports.jsonl"])
    def test_says_of_the_corpus_what_the_library_says(self, file):
        told = {answer["id"]: answer for answer in answers((HERE / file).read_bytes())}
        for entry in ENTRIES:
            if entry.file == file:
                known = entry.judged
                assert told[entry.id]["category"] == known.match.category
                assert told[entry.id]["retry"] is known.retry
                assert (told[entry.id]["countdown"] is None) is not known.retry

    @pytest.mark.parametrize(
        ("line", "error"),
        [
            ("no json", "line 1: no JSON object"),
            ("[1]", "no JSON object"),
            ('"text"', "no JSON object"),
            ("[" * 100_000, "line 1: no JSON object"),
            ('{"id": "a", "text": 5}', "text: not str"),
            ('{"id": "a", "exit_code": "128"}', "exit_code: not int"),
            ('{"id": "a", "http_status": true}', "http_status: not int"),
            ('{"id": "a", "credential_age": "old"}', "credential_age: not int or float"),
            ('{"id": "a", "credential": "hunter2"}', "credential: none, static or minted"),
        ],
    )
    def test_a_line_that_is_no_failure_is_named_and_the_rest_goes_on(self, line, error):
        result = runner.invoke(app, ["explain", "--jsonl"], input=f'{line}\n{{"id": "next", "text": "early EOF"}}\n')
        first, second = map(json.loads, result.stdout.splitlines())
        assert result.exit_code == 1
        assert first["error"] == error
        assert "hunter2" not in result.stdout
        assert second["category"] == "transient_network"

    def test_ten_thousand_lines_take_a_few_seconds(self):
        text = "".join(json.dumps({"id": e.id, "text": e.failure.text}) + "\n" for e in ENTRIES)
        lines = (text * (10_000 // len(ENTRIES) + 1)).splitlines()[:10_000]
        start = time.process_time()
        assert len(answers("\n".join(lines))) == 10_000
        assert time.process_time() - start < 10
