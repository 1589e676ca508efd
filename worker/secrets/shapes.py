"""Secrets nobody told us of, known by their looks. Every rule is one pass in linear time.

No lengths are assumed: installation tokens of GitHub grew from 40 to 520 characters with two dots. Rules
look back one character at most and, but for PEM blocks, never past a line's end; the stream relies on both.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

MASK = "***"

# A rule either always succeeds where its beginning stands or gives up within a bounded number of
# characters; a rule that could run to the end of the text and then fail would make hostile text quadratic.
_PEM = re.compile(r"-----BEGIN [^\n-]{0,64}-----(?:.*?-----END [^\n-]{0,64}-----|.*\Z)", re.DOTALL)
_HEADER = re.compile(
    r"((?:authorization|(?:private|job|x-auth|x-vault)-token|x-api-key)[\"']?[ \t]{0,8}[:=][ \t]{0,8}[\"']?"
    r"(?:(?:basic|bearer|token|negotiate|digest)[ \t]{1,8})?+|(?<![a-z0-9])bearer[ \t]{1,8})[^\s\"']{4,}",
    re.IGNORECASE,
)
_PASSWORD = re.compile(
    r"((?<![?&;a-z])(?:pass(?:word|wd|phrase)|(?:access|refresh|auth|private)_token|client_secret|secret_access_key"
    r"|accountkey|cookie)[\"']?[ \t]{0,8}[:=][ \t]{0,8}[\"']?)[^\s\"'&<>]{4,}",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    # A long one counts also where it is glued to a word.
    r"(?:gh[psour]_|github_pat_|glpat-)[A-Za-z0-9._-]{20,}|(?<![A-Za-z0-9])(?:"
    r"(?:gh[psour]_|github_pat_|gl(?:pat|dt|rt|cbt|ptt|oas|soat|ft)-|xox[a-z]-|xapp-|dckr_pat_|dop_v1_|whsec_"
    r"|hv[sbr]\.)"
    r"[A-Za-z0-9._-]{4,}"
    r"|(?:sk-|[sr]k_live_|[sr]k_test_|pypi-|e2b_|dtn_|AIza)[A-Za-z0-9._-]{12,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{8,}"
    r"|(?:hf_|npm_|ATBB|ATATT)[A-Za-z0-9_=-]{16,})"
)
_JWT = re.compile(r"eyJ[A-Za-z0-9._-]*")
_USERINFO = re.compile(r"://[^\s/?#\"'<>]*@")
_QUERY = re.compile(
    r"([?&;](?:(?:access|refresh|install|id|auth|private)_?token|token|api_?key|key|code|state|password|passwd|"
    r"(?:client_)?secret|sig|signature|x-amz-(?:signature|credential|security-token))=)[^&\s#\"'<>]+",
    re.IGNORECASE,
)
STARTS = (
    *("authorization", "private-token", "job-token", "x-api-key", "x-auth-token", "x-vault-token", "bearer"),
    *("password", "passwd", "passphrase", "access_token", "refresh_token", "auth_token", "private_token"),
    *("client_secret", "secret_access_key", "accountkey", "cookie", "://", "?", "&", ";"),
    *("ghp_", "ghs_", "gho_", "ghu_", "ghr_", "github_pat_", "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "gloas-"),
    *(
        "glsoat-",
        "glft-",
        "hvs.",
        "hvb.",
        "hvr.",
        "whsec_",
        "atbb",
        "atatt",
        "xox",
        "xapp-",
        "dckr_pat_",
        "dop_v1_",
        "sk-",
        "sk_live_",
        "rk_live_",
        "sk_test_",
        "rk_test_",
    ),
    *("pypi-", "e2b_", "dtn_", "aiza", "akia", "asia", "hf_", "npm_", "eyj"),
)
"""Lower-cased beginnings of the rules for lines: after one, a secret may go on to the end of its line."""
_LONGEST_START = max(map(len, STARTS))
_START = re.compile("|".join(map(re.escape, STARTS)), re.IGNORECASE)
_PEM_START = re.compile("-----BEGIN [^\n-]{0,64}-----")
_PEM_END = re.compile("-----END [^\n-]{0,64}-----")
_PEM_PARTIAL = re.compile("-----BEGIN [^\n-]{0,64}-{0,4}")
_PEM_MARK = 80
"""Characters in which the beginning of a PEM block fits."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules that are applied together.

    ``open_at`` says where in a text something may begin that the text does not end (or its length);
    ``end`` is what ends all that may begin.
    """

    redact: Callable[[str], str]
    open_at: Callable[[str], int]
    end: re.Pattern[str]


def _redact_blocks(text: str) -> str:
    return _PEM.sub(MASK, text)


def _open_block(text: str) -> int:
    position = 0
    while start := _PEM_START.search(text, position):
        end = _PEM_END.search(text, start.end())
        if end is None:
            return start.start()
        position = end.end()
    for begin in range(max(position, len(text) - _PEM_MARK), len(text)):
        if text[begin] == "-" and ("-----BEGIN ".startswith(text[begin:]) or _PEM_PARTIAL.fullmatch(text, begin)):
            return begin
    return len(text)


def _redact_lines(text: str) -> str:
    text = _HEADER.sub(rf"\1{MASK}", text)
    text = _PASSWORD.sub(rf"\1{MASK}", text)
    text = _TOKEN.sub(MASK, text)
    text = _JWT.sub(lambda match: MASK if match[0].count(".") >= 2 else match[0], text)
    text = _USERINFO.sub(f"://{MASK}@", text)
    return _QUERY.sub(rf"\1{MASK}", text)


def _open_line(text: str) -> int:
    line = text.rfind("\n") + 1
    start = _START.search(text, line)
    if start:
        return start.start()
    for begin in range(max(line, len(text) - _LONGEST_START + 1), len(text)):
        tail = text[begin:].lower()
        if any(known.startswith(tail) for known in STARTS):
            return begin
    return len(text)


BLOCKS = Rules(_redact_blocks, _open_block, _PEM_END)
"""PEM blocks."""
LINES = Rules(_redact_lines, _open_line, re.compile("(?=\n)"))
"""Headers, tokens, URL userinfo and query keys: all that ends with its line."""


def redact_shapes(text: str) -> str:
    """``text`` with everything that looks like a secret masked."""
    return LINES.redact(BLOCKS.redact(text))
