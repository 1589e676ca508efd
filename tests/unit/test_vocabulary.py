"""Every word our code gives a failure is in the closed lists; one that is not would leave the worker as `other`."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from docs.generate import REQUESTS
from tasks.clone.answer import PROGRAMS as CLONE_PROGRAMS
from tasks.clone.answer import REFUSALS
from tasks.clone.answer import STAGES as CLONE_STAGES
from worker.failures import vocabulary
from worker.failures.reasons import REASONS
from worker.retrying.requests import Reason

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted([*(ROOT / "worker").rglob("*.py"), *(ROOT / "tasks").rglob("*.py")])


def words_of(path: Path) -> Iterator[tuple[str, str]]:
    """(list, word) for each literal reason, stage and field in a module; ``none`` names no rule."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            if keyword.arg in {"reason", "stage"} and isinstance(keyword.value, ast.Constant):
                yield keyword.arg, keyword.value.value
        texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name == "InvalidRequest" and len(texts) == 2:
            yield "field", texts[0]
            yield "reason", texts[1]
        if name == "at" and len(texts) == 1:
            yield "stage", texts[0]
        if any(ast.unparse(arg).startswith("Category.") for arg in node.args):
            yield from (("reason or stage", text) for text in texts if text != "none")


LISTS = {
    "reason": REASONS,
    "stage": vocabulary.STAGES,
    "reason or stage": REASONS | vocabulary.STAGES,
    "field": vocabulary.FIELDS | {"SANDFERRY_KEYRING_FILE"},
}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_literal_words_are_members(path: Path):
    missing = sorted({(kind, word) for kind, word in words_of(path) if word not in LISTS[kind]} - {("reason", None)})
    assert missing == []


def test_the_scan_sees_what_it_should():
    seen = {word for path in SOURCES for _, word in words_of(path)}
    assert seen >= {"foreign_sandbox", "begin", "image_missing", "stream_cut"}


@pytest.mark.parametrize(
    ("words", "known"),
    [
        (REFUSALS, REASONS),
        ({reason.value for reason in Reason}, REASONS),
        (CLONE_STAGES, vocabulary.STAGES),
        (CLONE_PROGRAMS, vocabulary.PROGRAMS),
    ],
)
def test_words_of_the_jobs_are_members(words, known):
    assert sorted(set(words) - known) == []


def fields_of(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, info in model.model_fields.items():
        path = f"{prefix}{info.alias or name}"
        yield path
        for inner in models_in(info.annotation):
            yield from fields_of(inner, f"{path}_")


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from models_in(inner)


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_fields_of_requests_are_members(name: str):
    assert sorted(set(fields_of(REQUESTS[name])) - vocabulary.FIELDS) == []
