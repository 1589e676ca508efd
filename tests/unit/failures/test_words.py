import re

from worker.failures.classify import ALL_RULES
from worker.failures.model import Category
from worker.failures.vocabulary import CODES, ERRNOS, INTEGERS, KEYS, MEMBERS, REASONS, SIGNALS, short_name


def test_every_key_has_one_closed_list():
    assert sorted(KEYS) == sorted([*MEMBERS, *INTEGERS])


def test_every_word_keeps_the_outer_bound():
    words = {str(word) for members in (*MEMBERS.values(), CODES) for word in members}
    assert [word for word in words if not re.fullmatch(r"[A-Za-z0-9_]{1,64}", word)] == []


def test_system_names_are_there():
    assert {"ENOSPC", "ECONNRESET"} <= ERRNOS
    assert {"SIGKILL", "SIGTERM"} <= SIGNALS


def test_every_reason_of_a_rule_may_leave_the_worker():
    assert {rule.reason for rule in ALL_RULES} - REASONS == set()
    assert {str(category) for category in Category} - REASONS == set()


def test_short_name_is_the_last_part():
    assert short_name("requests.exceptions.ConnectionError") == "ConnectionError"
    assert short_name("OSError") == "OSError"
