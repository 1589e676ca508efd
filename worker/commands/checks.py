"""What `sandferry doctor` checks; each check returns findings with advice and never a secret or a raw error."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from worker import startup
from worker.sandboxes.deadline import Deadline
from worker.settings import Settings, is_redis

TIMEOUT = 5.0
"""Seconds that one check may wait for a server."""
HOSTED_TIMEOUT = 15.0
"""Same, for a service across the internet, its SDK's first import included."""
MINIMUM_GIT = (2, 38)
"""On the worker, for `merge-tree --write-tree` (design 7); a sandbox needs 2.37."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; ``advice`` is empty when all is well."""

    check: str
    level: Literal["ok", "warning", "fault"]
    advice: str = ""


def python(_: Settings) -> list[Finding]:
    """The interpreter and the two packages whose older pairs lose tasks."""
    found = f"python {sys.version_info.major}.{sys.version_info.minor}, celery {version('celery')}"
    return [Finding(f"{found}, billiard {version('billiard')}", "ok")]


def packages(_: Settings) -> list[Finding]:
    """Whether the `worker` and `tasks` that Python finds are ours: both are common names."""
    ours = Path(__file__).resolve().parents[1]
    findings = []
    for name, expected in (("worker", ours), ("tasks", ours.with_name("tasks"))):
        spec = importlib.util.find_spec(name)
        origin = Path(spec.origin).resolve().parent if spec and spec.origin else None
        shadowed = origin != expected or _shadow_in_cwd(name, expected)
        advice = f"another `{name}` hides ours: start from another directory, or in an environment of its own"
        findings.append(Finding(f"package {name}", "fault" if shadowed else "ok", advice if shadowed else ""))
    return findings


def _shadow_in_cwd(name: str, expected: Path) -> bool:
    here = Path.cwd()
    candidates = (here / f"{name}.py", here / name / "__init__.py")
    return any(path.exists() and not _is_ours(path, expected) for path in candidates)


def _is_ours(path: Path, expected: Path) -> bool:
    """Whether it is what runs, or a checkout of it beside the installed one."""
    return (
        path.resolve().parent in {expected, expected.parent}
        or path.read_bytes() == (expected / "__init__.py").read_bytes()
    )


def broker(config: Settings) -> list[Finding]:
    """Whether the broker answers."""
    from worker.app import make_app  # noqa: PLC0415 - the other checks do without Celery

    with make_app(config).connection_for_write(connect_timeout=TIMEOUT) as connection:
        try:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=TIMEOUT)
        except Exception as exc:  # noqa: BLE001 - every transport has its own
            name = type(exc).__name__
            return [Finding("broker", "fault", f"no answer ({name}): check SANDFERRY_BROKER_URL, start the server")]
    return [Finding("broker", "ok")]


def records(config: Settings) -> list[Finding]:
    """Whether the record store answers, and whether it would lose what it promised to keep."""
    from worker.stores.redis import StoreError, connect  # noqa: PLC0415 - same

    client = connect(config.records_url)
    try:
        client.ping()
        weak = startup.warnings(config, client)
    except StoreError as exc:
        return [Finding("record store", "fault", f"no answer ({type(exc).__name__}): check SANDFERRY_STATE_URL")]
    return [Finding("record store", "ok"), *(Finding(each.setting, "warning", each.consequence) for each in weak)]


def celery_settings(config: Settings) -> list[Finding]:
    """Whether any setting would lose or duplicate tasks: what a worker refuses to start with."""
    from worker.app import make_app  # noqa: PLC0415 - same

    wrong = startup.faults(config, make_app(config).conf)
    unknown = startup.notices(config, dict(os.environ))
    found = [Finding(each.setting, "fault", each.consequence) for each in wrong] or [Finding("delivery settings", "ok")]
    return found + [Finding(each.setting, "warning", each.consequence) for each in unknown]


def results(config: Settings) -> list[Finding]:
    """Whether the result backend answers."""
    if not is_redis(config.results_url):
        return [Finding("result backend", "warning", "not Redis: not checked")]
    from worker.stores.redis import StoreError, connect  # noqa: PLC0415 - same

    try:
        connect(config.results_url).ping()
    except StoreError as exc:
        return [Finding("result backend", "fault", f"no answer ({type(exc).__name__}): check SANDFERRY_RESULT_BACKEND")]
    return [Finding("result backend", "ok")]


def git(_: Settings) -> list[Finding]:
    """The git of this machine, which the local driver and copy-back use."""
    path = shutil.which("git")
    if path is None:
        return [Finding("git", "fault", "install git 2.38 or newer")]
    text = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=TIMEOUT).stdout
    found = re.search(r"(\d+)\.(\d+)", text)
    if found is None or (int(found[1]), int(found[2])) < MINIMUM_GIT:
        return [Finding("git", "fault", "older than 2.38: install a newer one")]
    return [Finding(f"git {found[0]}", "ok")]


def docker(config: Settings) -> list[Finding]:
    """The engine, if the extra is installed."""
    from worker.failures.model import InvalidRequest  # noqa: PLC0415 - same
    from worker.retrying.services import Services  # noqa: PLC0415 - same

    try:
        provider = Services(config).providers.get("docker")
        provider.find({}, deadline=Deadline.after(TIMEOUT))
    except InvalidRequest:
        return [Finding("docker", "warning", "not installed: pip install 'sandferry[docker]' if you use it")]
    except Exception as exc:  # noqa: BLE001 - the SDK has many ways to say so
        name = type(exc).__name__
        return [Finding("docker", "warning", f"engine does not answer ({name}): check SANDFERRY_DOCKER_URL")]
    return [Finding("docker", "ok")]


def hosted(config: Settings) -> list[Finding]:
    """Key and reach of the hosted providers that are set up."""
    files = {"daytona": config.daytona_api_key_file, "e2b": config.e2b_api_key_file}
    return [_provider(config, name) for name, file in files.items() if file is not None]


def _provider(config: Settings, name: str) -> Finding:
    from worker.failures.classify import classify  # noqa: PLC0415 - the other checks do without
    from worker.failures.model import Category, InvalidRequest  # noqa: PLC0415 - same
    from worker.retrying.services import Services  # noqa: PLC0415 - same
    from worker.sandboxes.base import LABEL_RUN  # noqa: PLC0415 - same

    variable = f"SANDFERRY_{name.upper()}_API"
    try:
        provider = Services(config).providers.get(name)
    except InvalidRequest as exc:
        if exc.reason == "sdk_not_installed":
            return Finding(name, "fault", f"a key is set, the SDK is missing: pip install 'sandferry[{name}]'")
        return Finding(name, "fault", f"{variable}_KEY_FILE cannot be read, or is empty")
    try:
        provider.find({LABEL_RUN: "doctor"}, deadline=Deadline.after(HOSTED_TIMEOUT))
    except Exception as exc:  # noqa: BLE001 - whatever an SDK raises is judged
        if classify(provider.facts(exc, operation="sandbox", stage="find")).category is Category.AUTH_DENIED:
            return Finding(name, "fault", f"the key is refused: check {variable}_KEY_FILE")
        return Finding(name, "warning", f"no answer ({type(exc).__name__}): check the network, {variable}_URL")
    return Finding(name, "ok")


def keys(config: Settings) -> list[Finding]:
    """The key ring and the GitHub App's key."""
    from worker.secrets import keyring  # noqa: PLC0415 - same

    if config.keyring_file is None:
        advice = "SANDFERRY_KEYRING_FILE is not set: sealed secrets cannot be opened, GitHub tokens not minted"
        return [Finding("key ring", "warning", advice)]
    try:
        count = len(keyring.list_keys(config.keyring_file))
    except (keyring.KeyRingError, OSError) as exc:
        reason = str(exc).removeprefix("key ring: ") if isinstance(exc, keyring.KeyRingError) else "cannot be read"
        return [Finding("key ring", "fault", f"{reason}; make one with `sandferry keys new`")]
    findings = [Finding(f"key ring ({count} keys)", "ok")]
    if (config.github_app_id is None) != (config.github_app_key_file is None):
        findings.append(Finding("github app", "fault", "set both SANDFERRY_GITHUB_APP_ID and _KEY_FILE, or neither"))
    elif config.github_app_key_file is not None and not config.github_app_key_file.is_file():
        findings.append(Finding("github app", "fault", "SANDFERRY_GITHUB_APP_KEY_FILE does not exist"))
    return findings


CHECKS: tuple[Callable[[Settings], list[Finding]], ...] = (
    python, packages, broker, celery_settings, records, results, git, docker, hosted, keys,
)  # fmt: skip
