"""The environment of a command: built, never inherited from the worker. Pure."""

import re
from collections.abc import Mapping

from worker.failures.model import InvalidRequest

BASE_ENV: Mapping[str, str] = {"LC_ALL": "C", "LANG": "C", "GIT_TERMINAL_PROMPT": "0"}
"""Messages in English, so that rules can read them; git fails instead of asking a terminal."""

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Debian's default ``PATH`` for root."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def built_env(*layers: Mapping[str, str] | None) -> dict[str, str]:
    """:data:`BASE_ENV` and the layers over it, later ones winning.

    :raises InvalidRequest: a name no shell could read, or a value with a NUL (``env: malformed``).
    """
    env = dict(BASE_ENV)
    for layer in layers:
        env.update(layer or {})
    if any(not _NAME.fullmatch(name) or "\0" in value for name, value in env.items()):
        raise InvalidRequest("env", "malformed")
    return env


def checked_argv(argv: object) -> list[str]:
    """The argument vector as a list.

    :raises InvalidRequest: it is empty, or an argument is no string or holds a NUL (``argv: malformed``).
    """
    items = list(argv) if isinstance(argv, (list, tuple)) else []
    if not items or any(not isinstance(item, str) or "\0" in item for item in items) or not items[0]:
        raise InvalidRequest("argv", "malformed")
    return items
