"""The HTTP status in a text: a number counts only where a status is written."""

import re

_WORDS = (
    r"400\b\]?:? bad request|401\b\]?:? (?:unauthorized|authorization required)|403\b\]?:? forbidden"
    r"|404\b\]?:? not found|408\b\]?:? request time-?out|409\b\]?:? conflict|410\b\]?:? gone"
    r"|413\b\]?:? (?:request entity|payload|content) too large|422\b\]?:? unprocessable|429\b\]?:? too many requests"
    r"|451\b\]?:? unavailable for legal|500\b\]?:? internal server error|502\b\]?:? (?:bad gateway|proxy error)"
    r"|503\b\]?:? (?:service|backend|temporarily|slow)|504\b\]?:? gateway time-?out"
)
_STATUS = re.compile(
    r"returned error: (?P<a>\d{3})(?!\d)"  # git through curl, the one place of a status in git's output
    r"|\bhttp(?:/[12](?:\.[01])?| status| response| error)?(?: code)?(?: was| is)?(?: =|:)? (?P<b>[1-5]\d\d)(?![\d.])"
    r"|\b(?<!exit )status(?: ?code)?\"?(?: is|:|=)? ?\"?(?P<c>[1-5]\d\d)(?![\d.])"
    r"|unexpected status(?: code)?(?: from [^\n:]{1,200})?(?: url)?:? (?P<d>\d{3})(?!\d)"
    r"|unexpected http status: (?P<e>\d{3})(?!\d)"
    r"|\"code\": ?\"?(?P<f>[45]\d\d)(?!\d)"
    r"|\b(?:response|error) code:? (?P<g>[45]\d\d)(?![\d.])"
    r"|connect tunnel failed, response (?P<h>\d{3})(?!\d)"
    r"|(?:^|[\s:])(?P<i>\d{3}) (?:client|server) error\b"
    r"|(?:^|(?:exception|error|sandbox): )(?P<j>[45]\d\d): "  # E2B: "sandboxexception: 504: ..."
    r"|\berror:? (?P<k>[45]\d\d): |error:root:(?P<l>[45]\d\d)\b"  # wget; Python's logging of a body
    r"|[\[(](?P<m>[45]\d\d)[\])]"  # "(502) reason", "<response [503]>", git-lfs' "[404] object"
    rf"|\b(?P<n>{_WORDS})",
    re.MULTILINE,
)


def status_in(text: str) -> int | None:
    """The first HTTP error status (400 to 599) in a normalised text that stands where one is written."""
    for found in _STATUS.finditer(text):
        status = int(next(group for group in found.groups() if group)[:3])
        if 400 <= status <= 599:
            return status
    return None
