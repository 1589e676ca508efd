"""Kinds of settings, and what each of them refuses.

What is said of a refused value is a constant: a value that does not fit may be a secret in the wrong place.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError
from pydantic_settings import NoDecode

YEAR = 366 * 86_400.0
"""Seconds. A longer time is a slip, and one of 1e300 is no number of milliseconds that Redis takes."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_HOST = re.compile(r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_UNLOCATED = frozenset({"unix", "redis+socket", "npipe", "amqp", "amqps", "pyamqp"})
"""Schemes whose address needs no host: a socket's path, and AMQP's own defaults."""


def refuse(why: str) -> PydanticCustomError:
    """What a check raises. ``why`` goes to the operator and holds nothing of the value."""
    return PydanticCustomError("setting", why)


def address(*schemes: str) -> Callable[[str], str]:
    """Make a check of an address with one of ``schemes``, a host and, if any, a port of 1 to 65535."""
    wanted = f"must be an address that begins with {' or '.join(f'{scheme}://' for scheme in schemes)}"

    def check(url: str) -> str:
        parts = split(url)
        if parts is None:
            raise refuse("is no address, or its port is none")
        if parts.scheme not in schemes:
            raise refuse(wanted)
        if not parts.hostname and parts.scheme not in _UNLOCATED:
            raise refuse("names no host")
        if parts.scheme in {"redis", "rediss"} and not re.fullmatch(r"/?\d{0,5}", parts.path):
            raise refuse("ends with the number of a database: redis://host:port/0")
        return url

    return check


def split(url: str) -> SplitResult | None:
    """Take an address apart; ``None`` when it is none."""
    try:
        parts = urlsplit(url)
        fits = parts.port != 0 and not re.search(r"[\s\x00-\x1f]", url)
    except ValueError:  # a port out of range, a bracket left open
        return None
    return parts if fits else None


def without_user(url: str) -> str:
    """Refuse a name or a password in an address that is shown, and for which there is another place."""
    if "@" in urlsplit(url).netloc:
        raise refuse("must hold no name or password")
    return url


def _absolute(path: Path) -> Path:
    if not path.is_absolute():
        raise refuse("must be an absolute path: workers start in different directories")
    return path


def _hosts(names: tuple[str, ...]) -> tuple[str, ...]:
    if not all(_HOST.fullmatch(name) for name in names):
        raise refuse("must be `host` or `host:port`, separated by commas")
    return names


def _digests(names: tuple[str, ...]) -> tuple[str, ...]:
    if not all(_DIGEST.fullmatch(name) for name in names):
        raise refuse("must be digests, `sha256:` and 64 digits, separated by commas: another would match no tool")
    return names


def _stores(places: dict[str, str]) -> dict[str, str]:
    for place in _named(places).values():
        if not place.startswith("/") and not re.match(r"[a-z][a-z0-9+.-]*://.", place):
            raise refuse("must be `name=URL` or `name=/path` pairs, separated by commas")
    return places


def _directories(places: dict[str, str]) -> dict[str, str]:
    if not all(place.startswith("/") for place in _named(places).values()):
        raise refuse("must be `name=/path` pairs, separated by commas; paths are absolute")
    return places


def _named(places: dict[str, str]) -> dict[str, str]:
    if not all(_NAME.fullmatch(name) for name in places):
        raise refuse("names are of letters, digits, `_`, `.` and `-`, at most 64: requests use them")
    return places


Seconds = Annotated[float, Field(gt=0, le=YEAR, allow_inf_nan=False)]
Names = Annotated[tuple[str, ...], NoDecode]
"""A comma-separated list."""
Hosts = Annotated[Names, AfterValidator(_hosts)]
Digests = Annotated[Names, AfterValidator(_digests)]
Stores = Annotated[dict[str, str], NoDecode, AfterValidator(_stores)]
"""Comma-separated pairs ``name=place``; places are fsspec URLs or absolute paths."""
Directories = Annotated[dict[str, str], NoDecode, AfterValidator(_directories)]
"""Comma-separated pairs ``name=/path``."""
ProviderName = Literal["local", "docker", "daytona", "e2b"]
Limits = Annotated[dict[ProviderName, Annotated[int, Field(ge=1, le=1_000_000)]], NoDecode]
"""Comma-separated pairs ``provider=number``."""
Directory = Annotated[Path, AfterValidator(_absolute)]
Broker = Annotated[str, AfterValidator(address("redis", "rediss", "redis+socket", "amqp", "amqps", "pyamqp"))]
Store = Annotated[str, AfterValidator(address("redis", "rediss", "unix"))]
WebAddress = Annotated[str, AfterValidator(address("https", "http"))]
PlainAddress = Annotated[WebAddress, AfterValidator(without_user)]
Engine = Annotated[str, AfterValidator(address("unix", "tcp", "http", "https", "ssh", "npipe"))]


def parts(text: str) -> tuple[str, ...]:
    """Read a comma-separated list; refuses separators alone, which may have been meant to allow nothing."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if text.strip() and not found:
        raise refuse("holds separators only")
    return found


def pairs(text: str) -> dict[str, str]:
    """Read comma-separated ``name=value`` pairs; refuses a name that comes twice: one of them would be lost."""
    found: dict[str, str] = {}
    for part in parts(text):
        name, _, value = part.partition("=")
        if name.strip() in found:
            raise refuse("names something twice")
        found[name.strip()] = value.strip()
    return found
