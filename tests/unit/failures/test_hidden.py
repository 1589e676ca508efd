"""What stands around a message does not hide it, and a message in a name does not count: the corpus, wrapped."""

import json

import pytest

from tests.corpus.report import firm
from worker.failures.classify import classify
from worker.failures.model import Category, Failure

ENTRIES = [entry for entry in firm() if entry.failure.text and "\n" in entry.failure.text][::2] + firm()[::5]


def judged(entry, text: str) -> Category:
    facts = entry.failure
    return classify(
        Failure(
            operation=facts.operation,
            stage=facts.stage,
            provider=facts.provider,
            program=facts.program,
            exit_code=facts.exit_code,
            http_status=facts.http_status,
            credential=facts.credential,
            text=text,
        )
    ).category


def each_line(text: str, before: str) -> str:
    return "\n".join(before + line for line in text.split("\n"))


WRAPPERS = {
    "timestamps": lambda text: each_line(text, "2026-01-02T03:04:05.123456789Z "),
    "compose": lambda text: each_line(text, "worker-1  | "),
    "compose and timestamps": lambda text: each_line(text, "worker-1  | 2026-01-02T03:04:05Z "),
    "buildkit": lambda text: each_line(text, "#12 5.960 "),
    "runner": lambda text: each_line(text, "##[error]"),
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "colours": lambda text: "\x1b[1;31m" + text.replace(": ", "\x1b[0m: \x1b[33m") + "\x1b[0m\x1b[K",
    "json": lambda text: json.dumps({"level": "error", "message": text}),
    "json in json": lambda text: json.dumps({"log": json.dumps({"message": text})}),
    "progress": lambda text: "Receiving objects:  42% (503/1200), 1.00 MiB | 2.00 MiB/s\r" + text,
    "another tool": lambda text: f"Error: command failed with an error: {text}",
    "noise": lambda text: "x" * 100_000 + "\n" + text,
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_a_wrapper_does_not_hide_a_message(entry, wrapper):
    assert judged(entry, WRAPPERS[wrapper](entry.failure.text)) is entry.judged.match.category


FAKES = (
    "Cloning into '{}'...",
    "Cloning into bare repository '{}'...",
    "HEAD is now at 1234567 {}",
    "From https://host/{}",
    "Receiving objects: 100% (503/503), done.",
    "remote: Counting objects: 429, done.",
)
WORDS = ("early eof", "connection refused", "no-space-left-on-device", "returned%20error:%20503", "401-unauthorized")


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("fake", FAKES)
def test_names_and_progress_do_not_fake_a_message(fake, words):
    text = fake.format(words.replace(" ", "%20") if "https" in fake else words)
    assert classify(Failure(operation="clone", stage="fetch", text=text)).category is Category.UNKNOWN
