from collections import Counter
from typing import ClassVar

import pytest

from worker.failures.classify import ALL_RULES, classify
from worker.failures.model import Category, Credential, EndedBy, Failure
from worker.failures.rules import Rule, first
from worker.failures.shapes import shape


def failure(text: str = "", **facts: object) -> Failure:
    return Failure(operation="clone", stage="fetch", text=text, **facts)


class TestTable:
    @pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.name)
    def test_every_example_is_judged_by_its_own_row(self, rule):
        match = classify(rule.facts())
        assert (match.rule, match.category, match.reason) == (rule.name, rule.category, rule.reason)

    @pytest.mark.parametrize("rule", [rule for rule in ALL_RULES if rule.text], ids=lambda rule: rule.name)
    def test_every_message_is_matched_in_lower_case_without_empty_matches(self, rule):
        assert not rule.text.search("")
        assert rule.text.pattern.replace(r"\S", "").lower() == rule.text.pattern

    def test_names_are_unique(self):
        assert [name for name, count in Counter(rule.name for rule in ALL_RULES).items() if count > 1] == []

    def test_every_row_has_a_condition_and_a_reason_to_exist(self):
        nothing = Failure(operation="", stage="")
        assert first(ALL_RULES, nothing) is None
        assert [rule.name for rule in ALL_RULES if len(rule.why) < 8] == []


class TestGitStderr:
    """What git 2.39 with curl 7.88 says, case by case."""

    @pytest.mark.parametrize(
        ("text", "category", "rule"),
        [
            (
                "fatal: could not read Username for 'https://h': terminal prompts disabled",
                Category.AUTH_DENIED,
                "prompt_disabled",
            ),
            (
                "remote: no\nfatal: Authentication failed for 'https://h/o/r/'",
                Category.AUTH_DENIED,
                "credential_rejected",
            ),
            (
                "remote: Repository not found.\nfatal: repository 'https://h/o/r/' not found",
                Category.NOT_FOUND,
                "repository_not_found",
            ),
            ("fatal: repository 'http://127.0.0.1:1/o/r/' not found", Category.NOT_FOUND, "repository_not_found"),
            *(
                (f"fatal: unable to access 'https://h/o/r/': The requested URL returned error: {status}", *verdict)
                for status, verdict in {
                    403: (Category.AUTH_DENIED, "http_forbidden"),
                    429: (Category.RATE_LIMITED, "http_rate_limit"),
                    500: (Category.TRANSIENT_SERVER, "http_server_error"),
                    502: (Category.TRANSIENT_SERVER, "http_server_error"),
                    503: (Category.TRANSIENT_SERVER, "http_server_error"),
                    504: (Category.TRANSIENT_SERVER, "http_server_error"),
                }.items()
            ),
            (
                "fatal: unable to access 'x': Recv failure: Connection reset by peer",
                Category.TRANSIENT_NETWORK,
                "transfer_broken",
            ),
            (
                "fatal: unable to access 'x': Failed to connect to h port 1 after 0 ms: Couldn't connect to server",
                Category.TRANSIENT_NETWORK,
                "not_connected",
            ),
            ("fatal: unable to access 'x': Could not resolve host: h", Category.TRANSIENT_NETWORK, "dns"),
            (
                "fatal: unable to access 'x': Operation too slow. Less than 1 bytes/sec transferred",
                Category.TRANSIENT_NETWORK,
                "stalled",
            ),
            (
                "fatal: Remote branch early EOF not found in upstream origin",
                Category.INVALID_REQUEST,
                "ref_missing",
            ),
            (
                "tar: a: Wrote only 512 of 10240 bytes: No space left on device",
                Category.RESOURCE_EXHAUSTED,
                "disk_full",
            ),
        ],
    )
    def test_is_read_right(self, text, category, rule):
        match = classify(failure(text, exit_code=128))
        assert (match.category, match.rule) == (category, rule)


class TestOrder:
    ECHO = "\nfatal: the remote end hung up unexpectedly\nfatal: early EOF\nfatal: index-pack failed"

    @pytest.mark.parametrize(
        ("root", "category"),
        [
            ("remote: HTTP Basic: Access denied", Category.AUTH_DENIED),
            ("fatal: write error: No space left on device", Category.RESOURCE_EXHAUSTED),
            ("remote: Repository not found.", Category.NOT_FOUND),
            ("error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502", Category.TRANSIENT_SERVER),
            ("error: RPC failed; HTTP 400 curl 22 The requested URL returned error: 400", Category.INVALID_REQUEST),
            ("fatal: Out of memory, malloc failed (tried to allocate 9 bytes)", Category.RESOURCE_EXHAUSTED),
            ("fatal: could not fetch abc1234 from promisor remote", Category.CORRUPT_DATA),
            ("", Category.TRANSIENT_NETWORK),
        ],
    )
    def test_the_root_decides_wherever_its_echo_stands(self, root, category):
        assert classify(failure(root + self.ECHO)).category is category
        assert classify(failure(f"{self.ECHO}\n{root}")).category is category

    @pytest.mark.parametrize(
        ("facts", "category"),
        [
            ({"ended_by": EndedBy.CANCELLED, "text": "Connection refused"}, Category.CANCELLED),
            ({"ended_by": EndedBy.DEADLINE, "exit_code": 137}, Category.TIMEOUT_AMBIGUOUS),
            ({"ended_by": EndedBy.OUTPUT_LIMIT, "signal": "SIGKILL"}, Category.RESOURCE_EXHAUSTED),
            ({"signal": "SIGKILL", "text": "Connection refused"}, Category.RESOURCE_EXHAUSTED),
            ({"exit_code": 137}, Category.RESOURCE_EXHAUSTED),
            ({"exit_code": 137, "text": "No such container: x"}, Category.SANDBOX_LOST),
            ({"exit_code": 127, "text": "sh: 503: git: not found"}, Category.INVALID_REQUEST),
            ({"text": "no IP address found. Is the Sandbox started?", "http_status": 400}, Category.SANDBOX_LOST),
            ({"text": "502: The sandbox was not found", "http_status": 502}, Category.SANDBOX_LOST),
            ({"text": "You have exceeded a secondary rate limit", "http_status": 403}, Category.RATE_LIMITED),
            ({"text": "port is already allocated", "http_status": 500}, Category.INVALID_REQUEST),
            ({"text": "returned error: 503", "http_status": 404}, Category.TRANSIENT_SERVER),
            ({"http_status": 503, "exception": "docker.errors.NotFound"}, Category.TRANSIENT_SERVER),
            ({"http_status": 200, "exception": "json.JSONDecodeError"}, Category.TRANSIENT_SERVER),
            ({"errno": "ENOSPC", "exception": "OSError"}, Category.RESOURCE_EXHAUSTED),
            ({"exception": "requests.exceptions.ReadTimeout"}, Category.TIMEOUT_AMBIGUOUS),
            ({"exception": "builtins.ValueError"}, Category.UNKNOWN),
            ({"exit_code": 128}, Category.UNKNOWN),
            ({}, Category.UNKNOWN),
        ],
    )
    def test_ending_then_message_then_status_then_type(self, facts, category):
        assert classify(failure(**facts)).category is category

    def test_a_cut_stream_of_our_own_is_no_network_fault(self):
        cut = Failure(operation="copy_back", stage="import", program="git", text="fatal: early EOF")
        assert classify(cut).category is Category.CORRUPT_DATA


class TestStepThatKnows:
    def test_keeps_its_category_and_reason(self):
        match = classify(failure("Connection refused", category=Category.NOT_FOUND, reason="moved", exit_code=137))
        assert (match.category, match.reason, match.rule) == (Category.NOT_FOUND, "moved", "step")

    def test_category_alone_is_its_own_reason(self):
        assert classify(failure(category=Category.CORRUPT_DATA)).reason == "corrupt_data"

    def test_reason_alone_is_kept_beside_a_judged_category(self):
        match = classify(failure(ended_by=EndedBy.DEADLINE, reason="soft_time_limit"))
        assert (match.category, match.reason) == (Category.TIMEOUT_AMBIGUOUS, "soft_time_limit")


class TestTokenReplication:
    SHAPES = (
        ({"text": "remote: Repository not found."}, Category.NOT_FOUND),
        ({"text": "fatal: repository 'https://h/o/r/' not found"}, Category.NOT_FOUND),
        ({"text": "fatal: Authentication failed for 'https://h/o/r/'"}, Category.AUTH_DENIED),
        ({"text": "could not read Username for 'https://h': terminal prompts disabled"}, Category.AUTH_DENIED),
        ({"text": "The requested URL returned error: 401"}, Category.AUTH_DENIED),
        ({"text": "The requested URL returned error: 403"}, Category.AUTH_DENIED),
        ({"text": "The requested URL returned error: 404"}, Category.NOT_FOUND),
        ({"http_status": 401}, Category.AUTH_DENIED),
        ({"http_status": 403}, Category.AUTH_DENIED),
        ({"http_status": 404}, Category.NOT_FOUND),
    )

    @pytest.mark.parametrize(("facts", "settled"), SHAPES)
    @pytest.mark.parametrize(
        ("credential", "age", "fresh"),
        [
            (Credential.MINTED, 0.0, True),
            (Credential.MINTED, 59.9, True),
            (Credential.MINTED, -5.0, True),
            (Credential.MINTED, None, True),
            (Credential.MINTED, 60.0, False),
            (Credential.MINTED, 3600.0, False),
            (Credential.MINTED, float("nan"), False),
            (Credential.STATIC, None, False),
            (Credential.STATIC, 0.0, False),
            (Credential.NONE, None, False),
            (Credential.NONE, 0.0, False),
        ],
    )
    def test_only_a_fresh_minted_token_makes_a_refusal_transient(self, facts, settled, credential, age, fresh):
        match = classify(failure(credential=credential, credential_age=age, **facts))
        assert match.category is (Category.TOKEN_REPLICATION if fresh else settled)
        assert (match.reason == "token_replication") is fresh

    def test_the_horizon_is_a_parameter(self):
        refused = failure(http_status=404, credential=Credential.MINTED, credential_age=70.0)
        assert classify(refused, horizon=90.0).category is Category.TOKEN_REPLICATION
        assert classify(refused, horizon=70.0).category is Category.NOT_FOUND

    @pytest.mark.parametrize(
        "text",
        [
            "Resource protected by organization SAML enforcement.",
            "the organization has an IP allow list enabled",
            "remote: Access to this repository has been disabled by GitHub staff.",
            "Host key verification failed.",
            "fatal: Remote branch x not found in upstream origin",
            "fatal: destination path 'r' already exists and is not an empty directory.",
            "Received HTTP code 403 from proxy after CONNECT",
            "No such image: x",
        ],
    )
    def test_what_a_token_has_no_part_in_stays_final(self, text):
        fresh = failure(text, http_status=403, credential=Credential.MINTED, credential_age=1.0)
        assert classify(fresh).category is not Category.TOKEN_REPLICATION


class TestConditions:
    FACTS = failure(
        "Boom", provider="docker", program="git", exception="a.b.KeyError", exit_code=3, http_status=418,
        signal="SIGTERM", errno="EIO", credential=Credential.STATIC, ended_by=EndedBy.ITSELF,
    )  # fmt: skip
    HOLD: ClassVar = {
        "text": shape("boom"),
        "statuses": (418,),
        "exit_codes": (3,),
        "exceptions": ("KeyError",),
        "signals": ("SIGTERM",),
        "errnos": ("EIO",),
        "ended_by": (EndedBy.ITSELF,),
        "stages": ("fetch",),
        "operations": ("clone",),
        "providers": ("docker",),
        "programs": ("git",),
        "credentials": (Credential.STATIC,),
    }
    FAIL: ClassVar = {
        "text": shape("bang"),
        "statuses": (404,),
        "exit_codes": (0,),
        "exceptions": ("OSError",),
        "signals": ("SIGKILL",),
        "errnos": ("ENOSPC",),
        "ended_by": (EndedBy.DEADLINE,),
        "stages": ("mint",),
        "operations": ("dispatch",),
        "providers": ("e2b",),
        "programs": ("tar",),
        "credentials": (Credential.NONE,),
    }

    def rule(self, **conditions: object) -> Rule:
        return Rule(name="r", category=Category.UNKNOWN, reason="other", why="a test", example="", **conditions)

    def test_all_hold_together(self):
        assert first([self.rule(**self.HOLD)], self.FACTS) is not None

    @pytest.mark.parametrize("name", FAIL)
    def test_one_that_fails_is_enough(self, name):
        assert first([self.rule(**{**self.HOLD, name: self.FAIL[name]})], self.FACTS) is None

    def test_rules_can_be_replaced(self):
        assert classify(self.FACTS, rules=[self.rule(errnos=("EIO",))]).rule == "r"
        assert classify(self.FACTS, rules=[]).rule == "none"
