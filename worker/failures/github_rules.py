"""What GitHub and other hosts say when they decide: limits, policies, suspended accounts."""

from worker.failures.model import Category, Failure
from worker.failures.rules import Rule, shape

GITHUB_RULES = (
    Rule(
        name="host_rate_limit",
        category=Category.RATE_LIMITED,
        reason="rate_limit",
        why="docs.github.com, REST rate limits: 403 or 429, told apart from a refusal by the message only",
        example=Failure(
            operation="clone", stage="mint", http_status=403, text="You have exceeded a secondary rate limit."
        ),
        text=shape(
            "secondary rate limits?",
            "api rate limit exceeded",
            "rate limit exceeded",
            "exceeded a? ?rate limit",
            "abuse detection mechanism",
            "submitted too quickly",
            "toomanyrequests",
            "pull rate limit",
            "too many requests",
            "retry your request again later",
        ),
    ),
    Rule(
        name="sso_required",
        category=Category.POLICY_DENIED,
        reason="sso_required",
        why="GitHub: SAML single sign-on; the token must be authorised for the organisation by a person",
        example="Resource protected by organization SAML enforcement. You must grant your token access.",
        text=shape(
            "saml enforcement",
            "enforced (?:saml|sso)",
            r"enabled or enforced saml",
            "saml sso",
            "re-authorize the oauth",
        ),
    ),
    Rule(
        name="ip_not_allowed",
        category=Category.POLICY_DENIED,
        reason="ip_not_allowed",
        why="GitHub: the organisation's IP allow list",
        example="the `owner` organization has an IP allow list enabled, and your IP address is not permitted",
        text=shape("ip allow list", "ip address is not permitted"),
    ),
    Rule(
        name="suspended",
        category=Category.POLICY_DENIED,
        reason="suspended",
        why="GitHub: an account or an App installation is suspended",
        example="This installation has been suspended",
        text=shape(
            "account is suspended", "account was suspended", "(?:has been|is) suspended", "installation suspended"
        ),
    ),
    Rule(
        name="repository_blocked",
        category=Category.POLICY_DENIED,
        reason="repository_blocked",
        why="GitHub: disabled by staff or owner, or blocked for legal reasons",
        example="remote: Access to this repository has been disabled by GitHub staff.",
        text=shape(
            "repository has been disabled",
            r"repository [^\n]{1,200} is disabled",
            "repository access blocked",
            "repository unavailable due to",
            "dmca takedown",
        ),
    ),
    Rule(
        name="unavailable_for_legal_reasons",
        category=Category.POLICY_DENIED,
        reason="repository_blocked",
        why="RFC 7725",
        example=Failure(operation="clone", stage="mint", http_status=451),
        statuses=(451,),
    ),
    Rule(
        name="lfs_quota",
        category=Category.POLICY_DENIED,
        reason="lfs_quota",
        why="GitHub: the owner's LFS bandwidth or storage is used up; a person must buy more",
        example="batch response: This repository is over its data quota. Purchase more data packs to restore access.",
        text=shape("over its data quota", "exceeded its lfs budget", "lfs bandwidth"),
    ),
    Rule(
        name="resource_not_accessible",
        category=Category.AUTH_DENIED,
        reason="permission_missing",
        why="GitHub: the App lacks a permission; a fresh token may lack it for seconds (octokit/auth-app.js#589)",
        example="Resource not accessible by integration",
        text=shape("resource not accessible by (?:integration|personal access token)"),
        hides_replication=True,
    ),
)
