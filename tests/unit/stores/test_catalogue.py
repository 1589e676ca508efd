"""The catalogue of run events is whole: what the code emits is in it, and nothing else."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.app import app
from worker.retrying.task import ClassifiedTask
from worker.stores.catalogue import ALWAYS, EVENTS, FIELDS

ROOT = Path(__file__).resolve().parents[3]
EMITTERS = {"emit", "report", "append", "_note"}
KINDS = {kind.name: kind for kind in EVENTS}
FAMILIES = ("sandbox.", "workspace.", "tool.", "worker.")


def emitted() -> Iterator[tuple[str, set[str], str]]:
    """Names, keywords and places of the calls that write an event with a name of its own."""
    for path in (*(ROOT / "worker").rglob("*.py"), *(ROOT / "tasks").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or name_of(node.func) not in EMITTERS:
                continue
            words = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            for name in (word for word in words if word.startswith(FAMILIES)):
                yield name, {keyword.arg for keyword in node.keywords if keyword.arg}, f"{path.name}:{node.lineno}"


def name_of(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def test_every_event_of_the_code_is_in_it_with_its_fields():
    found = list(emitted())
    assert len(found) >= 14
    for name, keywords, place in found:
        assert name in KINDS, place
        assert keywords <= set(KINDS[name].fields), place


def test_every_job_has_its_two_endings():
    app.loader.import_default_modules()
    prefixes = {t.event for t in app.tasks.values() if isinstance(t, ClassifiedTask) and t.event is not None}
    assert prefixes >= {"sandbox.git", "workspace.copy_back"}
    for prefix in prefixes:
        assert {f"{prefix}.retrying", f"{prefix}.failed"} <= KINDS.keys()


def test_nothing_in_it_is_of_the_past():
    prefixes = {t.event for t in app.tasks.values() if isinstance(t, ClassifiedTask)}
    made = {name for name, _, _ in emitted()} | {f"{p}.{end}" for p in prefixes for end in ("retrying", "failed")}
    assert KINDS.keys() <= made


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.name)
def test_fields_are_known(kind):
    assert {*kind.fields, *ALWAYS} <= FIELDS.keys()
    assert len(set(kind.fields)) == len(kind.fields)
