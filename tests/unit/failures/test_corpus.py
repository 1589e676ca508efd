import json
import re
from collections import Counter

import pytest

from tests.corpus.baselines import BASELINES
from tests.corpus.entries import ENTRIES, FILES, HERE
from tests.corpus.report import DECIDERS, FINAL, firm, lines, score


@pytest.mark.parametrize("entry", firm(), ids=lambda entry: entry.id)
def test_category_and_retry_are_right(entry):
    known = entry.judged
    assert known.retry is entry.retry, f"{known.match.rule}: {entry.why}"
    assert known.match.category is entry.expected, f"{known.match.rule}: {entry.why}"


def test_arguable_entries_are_reported_and_mostly_shared(record_property):
    arguable = [entry for entry in ENTRIES if entry.arguable]
    shared = sum(entry.judged.retry is entry.retry for entry in arguable)
    record_property("arguable", len(arguable))
    record_property("shared", shared)
    assert shared / len(arguable) >= 0.9


def test_what_was_held_out_is_judged_as_well_as_the_rest():
    held = [entry for entry in firm() if entry.held_out]
    assert len(held) >= 40
    assert score(held, DECIDERS["sandferry"]).accuracy >= 0.97


def test_no_final_failure_is_repeated():
    assert [entry.id for entry in firm() if entry.expected in FINAL and entry.judged.retry] == []


def test_every_baseline_is_worse():
    ours = score(firm(), DECIDERS["sandferry"])
    for name in BASELINES:
        theirs = score(firm(), DECIDERS[name])
        assert theirs.accuracy < ours.accuracy
        assert theirs.false_retries + theirs.missed > ours.false_retries + ours.missed


def test_the_report_names_every_category_and_baseline():
    text = "\n".join(lines())
    assert [category for category in {entry.expected for entry in firm()} if category not in text] == []
    assert [name for name in BASELINES if name not in text] == []


class TestEntries:
    def test_ids_are_unique(self):
        assert [name for name, count in Counter(entry.id for entry in ENTRIES).items() if count > 1] == []

    def test_each_has_a_source_and_a_reason(self):
        assert [entry.id for entry in ENTRIES if not entry.source or len(entry.why) < 5] == []

    def test_our_own_have_an_address(self):
        assert [e.id for e in ENTRIES if e.file != FILES[0] and not e.source.startswith("https://")] == []

    @pytest.mark.parametrize("file", FILES)
    def test_names_are_neutral_and_nothing_looks_like_a_token(self, file):
        text = "\n".join(json.loads(line)["text"] for line in (HERE / file).read_text().splitlines())
        assert (
            re.findall(r"gh[pousr]_[A-Za-z0-9]{16,}|github_pat_|AKIA[A-Z0-9]{12}|glpat-|e2b_[0-9a-f]{16}", text) == []
        )
        owners = set(re.findall(r"(?<!api\.)github\.com[/:](?:443/)?([\w.-]+)/", text))
        assert owners <= {"owner", "rest", "en", "get-started", "articles", "new", "contact", "org", "docs"}
