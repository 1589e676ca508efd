"""Bare repositories for the doubles, and git in an environment that is built, not inherited."""

import os
import subprocess
from pathlib import Path

BASE_ENV = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "T",
    "GIT_AUTHOR_EMAIL": "t@example.invalid",
    "GIT_COMMITTER_NAME": "T",
    "GIT_COMMITTER_EMAIL": "t@example.invalid",
}


def git(*args: str, cwd: Path | None = None, env: dict[str, str] | None = None, check: bool = True):
    """Run git; a failure raises with git's own words."""
    done = subprocess.run(
        ["git", *args], cwd=cwd, env=BASE_ENV | (env or {}), capture_output=True, text=True, timeout=60, check=False
    )
    if check and done.returncode:
        raise AssertionError(f"git {args[0]}: {done.stderr}")
    return done


def make_repository(root: Path, name: str, files: dict[str, bytes] | None = None) -> str:
    """A bare repository ``<root>/<owner>/<repo>.git`` with one commit on ``main``; the commit."""
    bare, work = root / f"{name}.git", root / f".work-{name.replace('/', '-')}"
    git("init", "-q", "--bare", "-b", "main", str(bare))
    git("init", "-q", "-b", "main", str(work))
    for path, data in (files or {"README.md": b"hello\n"}).items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_bytes(data)
    git("add", "-A", cwd=work)
    git("commit", "-qm", "base", cwd=work)
    git("push", "-q", str(bare), "main", cwd=work)
    return git("rev-parse", "HEAD", cwd=work).stdout.strip()


def bound_helper(url: str, token: str) -> dict[str, str]:
    """The environment of a credential helper that answers for the scheme, host and port of ``url`` alone."""
    origin = "/".join(url.split("/")[:3])
    config = [
        ("credential.helper", ""),
        (f"credential.{origin}.helper", '!f() { echo username=x-access-token; echo "password=$TOKEN"; }; f'),
        ("core.hooksPath", "/dev/null"),
    ]
    env = {"TOKEN": token, "GIT_CONFIG_COUNT": str(len(config))}
    for index, (key, value) in enumerate(config):
        env |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
    return env
