"""Which URLs name a repository, and the safe directory names that follow from one. Pure."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from worker.retrying.requests import Reason, reject

URL_MAX = 2048
"""Characters."""
COMPONENT_MAX = 100
"""Characters of one path component; GitHub's own bound for a repository name."""
COMPONENTS_MAX = 21
"""GitLab nests groups twenty deep; the repository comes on top."""
RESERVED_PREFIX = ".sandferry"
"""Names of our own files among the checkouts."""

_DEFAULT_PORT = {"https": 443, "http": 80}
_PLAIN = re.compile(r"[!-~]+")
_UNSAFE = re.compile(r"[%?#\\]")
_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<authority>[^/]*)/(?P<path>.*)", re.IGNORECASE)
_HOST = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")
_COMPONENT = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository of a git host, without any credential. ``port`` is ``None`` for the scheme's own."""

    scheme: str
    host: str
    port: int | None
    owner: tuple[str, ...]
    """One component, or several where groups nest."""
    name: str
    """Without the ``.git`` suffix."""
    suffix: str = ""
    """``.git`` if the request wrote it: some servers know only one spelling."""

    @property
    def origin(self) -> str:
        """Scheme, host and port: what a credential is bound to."""
        return f"{self.scheme}://{self.host}" + (f":{self.port}" if self.port else "")

    @property
    def path(self) -> str:
        """Owner and name joined by ``/``."""
        return "/".join((*self.owner, self.name))

    @property
    def url(self) -> str:
        """What git fetches from and records as ``origin``."""
        return f"{self.origin}/{self.path}{self.suffix}"


def parse_url(url: str, *, http_hosts: Collection[str] = ()) -> Repository:
    """Take a URL apart. ``http_hosts`` holds ``host`` or ``host:port`` for which plain http is allowed.

    :raises pydantic_core.PydanticCustomError: its type is the :class:`Reason`.
    """
    match = _URL.fullmatch(url)
    if len(url) > URL_MAX or not match or not _PLAIN.fullmatch(url) or _UNSAFE.search(url):
        raise reject(Reason.BAD_VALUE)
    if "@" in match["authority"]:
        raise reject(Reason.URL_USERINFO)
    scheme = match["scheme"].lower()
    host, port = _authority(match["authority"].lower(), scheme)
    if scheme == "http" and not {host, f"{host}:{port or 80}"} & {name.lower() for name in http_hosts}:
        raise reject(Reason.URL_SCHEME)
    *owner, name = _components(match["path"].removesuffix("/"))
    stem = name.removesuffix(".git")
    for component in (*owner, stem):
        if not safe_component(component):
            raise reject(Reason.UNSAFE_PATH)
    return Repository(
        scheme=scheme, host=host, port=port, owner=tuple(owner), name=stem, suffix=name.removeprefix(stem)
    )


def safe_component(name: str) -> bool:
    """Whether ``name`` can be one directory name on any file system, and none of git's or of ours."""
    folded = name.lower()
    return (
        len(name) <= COMPONENT_MAX
        and _COMPONENT.fullmatch(name) is not None
        and folded not in {".", "..", ".git"}
        and not folded.startswith(RESERVED_PREFIX)
    )


def _authority(text: str, scheme: str) -> tuple[str, int | None]:
    if scheme not in _DEFAULT_PORT:
        raise reject(Reason.URL_SCHEME)
    host, colon, digits = text.partition(":")
    if not _HOST.fullmatch(host) or len(host) > 253 or (colon and not re.fullmatch(r"[0-9]{1,5}", digits)):
        raise reject(Reason.BAD_VALUE)
    port = int(digits) if colon else None
    if port is not None and not 1 <= port <= 65535:
        raise reject(Reason.BAD_VALUE)
    return host, None if port == _DEFAULT_PORT[scheme] else port


def _components(path: str) -> list[str]:
    components = path.split("/")
    if not 2 <= len(components) <= COMPONENTS_MAX:
        raise reject(Reason.UNSAFE_PATH)
    return components
