"""What a git credential is good for, written one way only."""

import re

from worker.failures.model import InvalidRequest

DEFAULT_PORTS = {"http": "80", "https": "443"}
"""Ports a URL need not name (RFC 9110, 4.2)."""

_COMPONENT = re.compile(r"(?!\.{1,2}\Z|\.git\Z)[A-Za-z0-9_.-]{1,255}")
# One pattern instead of urllib: urlsplit drops tabs and line ends, and two readers of one URL are how a
# credential reaches another host.
_GIT_URL = re.compile(
    r"(?P<scheme>https?)://(?:[^@/\\?#\s]*@)?"
    r"(?P<host>[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])(?::(?P<port>[0-9]{1,5}))?"
    r"/(?P<path>[^/]+(?:/[^/]+?){1,20})(?:\.git)?/*",  # GitLab nests groups twenty deep
    re.IGNORECASE | re.ASCII,
)


def is_component(text: str) -> bool:
    """Whether ``text`` is an owner or a repository name that is safe in a path and in a URL."""
    return _COMPONENT.fullmatch(text) is not None


def git_subject(url: str, *, field_name: str = "url") -> str:
    """``scheme://host[:port]/owner/repo`` of a git URL: what a sealed credential is bound to.

    Scheme and host are lower-cased; userinfo, the scheme's default port, a trailing ``/`` and ``.git`` are
    dropped; owner (nested groups too) and repository keep their case, as some hosts tell cases apart.

    :raises InvalidRequest: ``field_name`` is no http(s) URL of that form (``malformed_url``).
    """
    match = _GIT_URL.fullmatch(url)
    if match is None or not all(map(is_component, match["path"].split("/"))):
        raise InvalidRequest(field_name, "malformed_url")
    scheme, host, port = match["scheme"].lower(), match["host"].lower(), match["port"]
    authority = host if port in (None, DEFAULT_PORTS[scheme]) else f"{host}:{port}"
    return f"{scheme}://{authority}/{match['path']}"


def tool_subject(digest: str) -> str:
    """``sha256:<digest>`` of a tool's package (64 hexadecimal digits): what a tool's secret is bound to."""
    return f"sha256:{digest}"
