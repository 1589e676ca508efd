"""One-line messages of git, curl, ssh, the engine, the SDKs and HTTP clients, from their catalogues."""

import pytest

from tests.corpus.entries import HERE
from worker.failures.explanation import explain
from worker.failures.model import Category, Failure
from worker.failures.schedule import RETRIED

LINES = [line.split("|", 1) for line in (HERE / "catalogue.txt").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("category", "text"), LINES)
def test_a_message_is_known(category, text):
    known = explain(Failure(operation="clone", stage="fetch", exit_code=1, text=text.replace("\\n", "\n")))
    assert known.match.category is Category(category)
    assert known.retry is (known.match.category in RETRIED)


def test_there_are_many_of_each_kind():
    kinds = {category for category, _ in LINES}
    assert len(LINES) > 200
    assert kinds >= set(Category) - {Category.TOKEN_REPLICATION}
