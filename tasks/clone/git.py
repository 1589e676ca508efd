"""The environment of every git command of a clone. Pure.

Configuration travels by ``GIT_CONFIG_COUNT`` only: nothing of it is written into the sandbox, and what the
sandbox's own user and system configured is not read.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tasks.clone.repository import Repository
from worker.failures.model import Credential
from worker.secrets.secret import Secret

USERNAME = "SANDFERRY_GIT_USERNAME"
TOKEN = "SANDFERRY_GIT_TOKEN"
"""Variables the credential helper reads; the token is nowhere else."""

HELPER = f"""!f() {{ test "$1" = get && printf 'username=%s\\npassword=%s\\n' "${USERNAME}" "${TOKEN}"; }}; f"""
"""A credential helper of one line. ``printf`` is built into the shell, so the token is in no argv."""

LOW_SPEED_LIMIT = 1000
"""Bytes per second below which a transfer counts as stalled."""
LOW_SPEED_TIME = 30
"""Seconds a transfer may be stalled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitCredential:
    """A user name and a token for the request's repository. ``age`` is seconds since it was minted."""

    username: str
    token: Secret
    source: Credential = Credential.STATIC
    age: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What the operator set for git's transfers: a proxy URL, a CA file inside the sandbox."""

    proxy: str | None = None
    ca_file: str | None = None


def environment(
    repository: Repository,
    credential: GitCredential | None,
    *,
    network: Network,
    trusted: Iterable[str],
) -> dict[str, str]:
    """Variables for git. ``trusted`` are the directories that may belong to another user."""
    env = {
        "LC_ALL": "C",
        # No home: its .netrc would go to the host as a credential. Below a device no program finds a file, and
        # nobody in the sandbox can put one there.
        "HOME": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        # git runs these for a URL or a prompt that a repository chose; `false` does nothing with either.
        "GIT_SSH_COMMAND": "false",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        # Newer git heeds this; in older ones the closed protocols do the same.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
    }
    if credential is not None:
        env |= {USERNAME: credential.username, TOKEN: credential.token.reveal()}
    return env | _as_variables(_config(repository, network, trusted, authenticated=credential is not None))


def _config(
    repository: Repository,
    network: Network,
    trusted: Iterable[str],
    *,
    authenticated: bool,
) -> list[tuple[str, str]]:
    config = [
        ("credential.helper", ""),
        ("core.askPass", ""),
        ("core.hooksPath", "/dev/null"),
        ("core.fsmonitor", "false"),
        ("core.attributesFile", "/dev/null"),
        ("core.excludesFile", "/dev/null"),
        ("protocol.allow", "never"),
        (f"protocol.{repository.scheme}.allow", "always"),
        # Submodules and redirects of a plain http test host may be https; never the other way round.
        ("protocol.https.allow", "always"),
        ("http.followRedirects", "initial"),
        ("http.lowSpeedLimit", str(LOW_SPEED_LIMIT)),
        ("http.lowSpeedTime", str(LOW_SPEED_TIME)),
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
        ("fetch.unpackLimit", "1"),  # packs, not loose objects: the baseline keeps them by hard links
        ("checkout.workers", "0"),  # as many as there are processors; only from 100 files on
        ("submodule.recurse", "false"),
        ("init.defaultBranch", "main"),
        ("advice.detachedHead", "false"),
    ]
    if authenticated:
        config.append((f"credential.{repository.origin}.helper", HELPER))
    if network.proxy is not None:
        config.append(("http.proxy", network.proxy))
    if network.ca_file is not None:
        config.append(("http.sslCAInfo", network.ca_file))
    return config + [("safe.directory", path) for path in trusted]


def _as_variables(config: list[tuple[str, str]]) -> dict[str, str]:
    variables = {"GIT_CONFIG_COUNT": str(len(config))}
    for number, (key, value) in enumerate(config):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables
