"""Facts -> category: the order of judgement."""

from collections.abc import Iterable
from dataclasses import dataclass

from worker.failures.auth_rules import AUTH_RULES
from worker.failures.context_rules import CONTEXT_RULES
from worker.failures.daytona_rules import DAYTONA_RULES
from worker.failures.disk_rules import DISK_RULES
from worker.failures.docker_rules import DOCKER_RULES
from worker.failures.e2b_rules import E2B_RULES
from worker.failures.echo_rules import ECHO_RULES
from worker.failures.ending_rules import ENDING_RULES
from worker.failures.exception_rules import EXCEPTION_RULES
from worker.failures.git_rules import GIT_RULES
from worker.failures.git_state_rules import GIT_STATE_RULES
from worker.failures.github_rules import GITHUB_RULES
from worker.failures.http_rules import HTTP_RULES
from worker.failures.image_rules import IMAGE_RULES
from worker.failures.integrity_rules import INTEGRITY_RULES
from worker.failures.model import Category, Credential, Failure
from worker.failures.network_rules import NETWORK_RULES
from worker.failures.redis_rules import REDIS_RULES
from worker.failures.rules import Rule, first
from worker.failures.tls_rules import TLS_RULES
from worker.failures.transfer_rules import TRANSFER_RULES

HORIZON = 60.0
"""Seconds for which a freshly minted token may be unknown to some of GitHub's servers (design, section 2)."""

ALL_RULES: tuple[Rule, ...] = (
    # Who ended it, signal, exit code: structure that no text can argue with.
    *ENDING_RULES,
    # Known messages. What is most specific first: a root cause before what it leads to.
    *GITHUB_RULES,
    *DISK_RULES,
    *TLS_RULES,
    *TRANSFER_RULES,
    *INTEGRITY_RULES,
    *GIT_STATE_RULES,
    *GIT_RULES,
    *DAYTONA_RULES,
    *E2B_RULES,
    *IMAGE_RULES,
    *DOCKER_RULES,
    *REDIS_RULES,
    *AUTH_RULES,
    *NETWORK_RULES,
    *CONTEXT_RULES,
    # The HTTP status, then messages that only echo a cause which nobody has named so far.
    *HTTP_RULES,
    *ECHO_RULES,
    # The exception's type.
    *EXCEPTION_RULES,
)


@dataclass(frozen=True, slots=True)
class Match:
    """What a failure was judged to be: a category, a reason of the closed list, and the rule that said so."""

    category: Category
    reason: str
    rule: str


def classify(failure: Failure, rules: Iterable[Rule] = ALL_RULES, horizon: float = HORIZON) -> Match:
    """Judge a failure.

    A step that set ``category`` knew; a set ``reason`` is kept. ``horizon`` is seconds.
    """
    if failure.category is not None:
        return Match(failure.category, failure.reason or failure.category.value, "step")
    rule = first(rules, failure)
    if rule is None:
        return Match(Category.UNKNOWN, failure.reason or "unknown", "none")
    if rule.hides_replication and is_fresh(failure, horizon):
        return Match(Category.TOKEN_REPLICATION, "token_replication", rule.name)
    return Match(rule.category, failure.reason or rule.reason, rule.name)


def is_fresh(failure: Failure, horizon: float = HORIZON) -> bool:
    """Whether the token was minted less than ``horizon`` seconds ago; an unknown age counts as just now."""
    age = 0.0 if failure.credential_age is None else failure.credential_age
    return failure.credential is Credential.MINTED and age < horizon
