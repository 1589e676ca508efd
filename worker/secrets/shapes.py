"""Secrets nobody told us of, known by their looks. Every rule is one pass in linear time.

No lengths are assumed: installation tokens of GitHub grew from 40 to 520 characters with two dots. Rules
look back one character at most and, but for PEM blocks, never past a line's end; the stream relies on both.
"""

import re

MASK = "***"

# A rule either always succeeds where its beginning stands or gives up within a bounded number of
# characters; a rule that could run to the end of the text and then fail would make hostile text quadratic.
_PEM = re.compile(r"-----BEGIN [^\n-]{0,64}-----(?:.*?-----END [^\n-]{0,64}-----|.*\Z)", re.DOTALL)
_HEADER = re.compile(
    r"((?:authorization|private-token|job-token|x-api-key)[\"']?[ \t]{0,8}[:=][ \t]{0,8}[\"']?"
    r"(?:(?:basic|bearer|token|negotiate|digest)[ \t]{1,8})?|(?<![a-z0-9])bearer[ \t]{1,8})[^\s\"']{4,}",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:gh[psour]_|github_pat_|gl(?:pat|dt|rt|cbt|ptt|oas|soat)-|xox[a-z]-|xapp-|dckr_pat_|dop_v1_)[A-Za-z0-9._-]{4,}"
    r"|(?:sk-|[sr]k_live_|[sr]k_test_|pypi-|e2b_|dtn_|AIza)[A-Za-z0-9._-]{12,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{8,}"
    r"|(?:hf_|npm_)[A-Za-z0-9]{16,})"
)
_JWT = re.compile(r"eyJ[A-Za-z0-9._-]*")
_USERINFO = re.compile(r"://[^\s/?#\"'<>]*@")
_QUERY = re.compile(
    r"([?&;](?:(?:access|refresh|install|id|auth|private)_?token|token|api_?key|key|code|state|password|passwd|"
    r"(?:client_)?secret|sig|signature|x-amz-(?:signature|credential|security-token))=)[^&\s#\"'<>]+",
    re.IGNORECASE,
)
STARTS = (
    *("-----begin ", "authorization", "private-token", "job-token", "x-api-key", "bearer", "://", "?", "&", ";"),
    *("ghp_", "ghs_", "gho_", "ghu_", "ghr_", "github_pat_", "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "gloas-"),
    *("glsoat-", "xox", "xapp-", "dckr_pat_", "dop_v1_", "sk-", "sk_live_", "rk_live_", "sk_test_", "rk_test_"),
    *("pypi-", "e2b_", "dtn_", "aiza", "akia", "asia", "hf_", "npm_", "eyj"),
)
"""Lower-cased beginnings of all rules: a line that holds one may hold a secret up to its end."""
_START = re.compile("|".join(map(re.escape, STARTS)), re.IGNORECASE)
_PEM_START = re.compile("-----BEGIN [^\n-]{0,64}-----")
PEM_END = re.compile("-----END [^\n-]{0,64}-----")
"""What ends a PEM block."""


def redact_shapes(text: str) -> str:
    """``text`` with everything that looks like a secret masked."""
    text = _PEM.sub(MASK, text)
    text = _HEADER.sub(rf"\1{MASK}", text)
    text = _TOKEN.sub(MASK, text)
    text = _JWT.sub(lambda match: MASK if match[0].count(".") >= 2 else match[0], text)
    text = _USERINFO.sub(f"://{MASK}@", text)
    return _QUERY.sub(rf"\1{MASK}", text)


def open_shape(text: str) -> int:
    """Where a secret may begin that ``text`` does not end: its index, or the length of ``text``.

    That is the first beginning of a rule in the last, unfinished line, one character early as rules look
    back by one; or the beginning of a PEM block without its end.
    """
    line = text.rfind("\n") + 1
    start = _START.search(text, line)
    found = start.start() if start else line + _partial(text[line:])
    return min(max(0, found - 1) if found < len(text) else found, open_pem(text))


def _partial(line: str) -> int:
    longest = max(map(len, STARTS))
    for start in range(max(0, len(line) - longest + 1), len(line)):
        tail = line[start:].lower()
        if any(known.startswith(tail) for known in STARTS):
            return start
    return len(line)


def open_pem(text: str) -> int:
    """Where a PEM block begins that ``text`` does not end, or the length of ``text``."""
    position = 0
    while start := _PEM_START.search(text, position):
        end = PEM_END.search(text, start.end())
        if end is None:
            return start.start()
        position = end.end()
    return len(text)
