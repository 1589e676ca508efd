import pytest

from worker.retrying.stamp import HEADER, MOST, Stamp


@pytest.mark.parametrize(
    ("headers", "retries", "expected"),
    [
        (None, 0, Stamp(1)),
        ({}, 2, Stamp(3)),
        ({"other": 1}, 1, Stamp(2)),
        ({HEADER: "text"}, 1, Stamp(2)),
        ({HEADER: {}}, 4, Stamp(5)),
        ({HEADER: {"attempt": 3}}, 0, Stamp(3)),
        ({HEADER: {"attempt": 0}}, 0, Stamp(1)),
        ({HEADER: {"attempt": -1}}, 1, Stamp(2)),
        ({HEADER: {"attempt": True}}, 1, Stamp(2)),
        ({HEADER: {"attempt": "2"}}, 0, Stamp(1)),
        ({HEADER: {"attempt": 2.0}}, 0, Stamp(1)),
        ({HEADER: {"attempt": MOST}}, 0, Stamp(MOST)),
        ({HEADER: {"attempt": MOST + 1}}, 0, Stamp(1)),
        ({HEADER: {"attempt": 2, "carry": "sealed"}}, 0, Stamp(2, "sealed")),
        ({HEADER: {"attempt": 2, "carry": 5}}, 0, Stamp(2)),
        ({HEADER: {"v": 1, "sent_at": 12.5}}, 0, Stamp(1, sent_at=12.5)),
        ({HEADER: {"sent_at": "now"}}, 0, Stamp(1)),
    ],
)
def test_reads_what_is_ours_and_falls_back_to_celerys_count(headers, retries, expected):
    assert Stamp.read(headers, retries) == expected


def test_next_headers_keep_the_others_and_drop_the_redelivery_mark():
    others = {"x": {"nested": [1]}, "redelivered": True, HEADER: {"attempt": 1, "carry": "old"}}
    headers = Stamp(2, "new").headers(others)
    assert headers == {"x": {"nested": [1]}, HEADER: {"v": 1, "attempt": 2, "carry": "new"}}
    assert others["redelivered"] is True


def test_what_is_written_is_read():
    stamp = Stamp(2, "sealed")
    assert Stamp.read(stamp.headers(None), 0) == stamp


@pytest.mark.parametrize("sent_at", [10**400, -1, float("nan"), float("inf"), "now", None, [1]])
def test_a_time_that_is_none_is_ignored(sent_at):
    assert Stamp.read({HEADER: {"attempt": 1, "sent_at": sent_at}}, 0).sent_at is None


def test_a_first_message_has_waited_since_it_was_sent():
    assert Stamp.read({HEADER: {"attempt": 1, "sent_at": 100.0}}, 0).waited(130.0) == 30.0
    assert Stamp.read({HEADER: {"attempt": 1, "sent_at": 100.0}}, 0).waited(90.0) == 0.0
    assert Stamp.read({HEADER: {"attempt": 2, "sent_at": 100.0}}, 0).waited(130.0) == 0.0
