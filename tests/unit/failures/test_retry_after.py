import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.failures.retry_after import parse_reset, parse_retry_after, retry_after

NOW = 1_445_412_480.0  # Wed, 21 Oct 2015 07:28:00 GMT


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 120 ", 120.0),
        ("0", 0.0),
        ("1.5", 1.5),
        ("Wed, 21 Oct 2015 07:28:30 GMT", 30.0),
        ("Wednesday, 21-Oct-15 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2015 07:28:30 -0000", 30.0),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0.0),
        ("", None),
        ("-1", None),
        ("soon", None),
        ("1e9", None),
        ("nan", None),
        ("\u0661\u0662", None),
        ("99999999999", None),
        ("Wed, 99 Oct 2015 07:28:30 GMT", None),
        ("1" * 1_000_000, None),
    ],
)
def test_both_forms_of_retry_after(value, seconds):
    assert parse_retry_after(value, now=NOW) == seconds


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("1445412510", 30.0), ("1445412000", 0.0), ("", None), ("-1", None), ("later", None)],
)
def test_reset_is_a_moment(value, seconds):
    assert parse_reset(value, now=NOW) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "7", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1445412510"}, 7.0),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1445412510"}, 30.0),
        ({"X-RateLimit-Remaining": "4999", "X-RateLimit-Reset": "1445412510"}, None),
        ({"X-RateLimit-Reset": "1445412510"}, None),
        ({}, None),
    ],
)
def test_headers_in_any_case(headers, seconds):
    assert retry_after(headers, now=NOW) == seconds


@given(st.text(max_size=80))
def test_any_value_is_a_wait_or_nothing(value):
    seconds = parse_retry_after(value, now=NOW)
    assert seconds is None or seconds >= 0
