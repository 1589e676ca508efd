"""A git that fails once, when told to: what an operator sees of a copy-back that needs a second attempt."""

import shlex
import shutil
from pathlib import Path

from worker.sandboxes.environment import SEARCH_PATH

_SCRIPT = """#!/bin/sh
# The snapshot's commit fails once if the flag is there; everything else is git's own.
if [ -e {flag} ]; then
    for word; do
        if [ "$word" = commit-tree ]; then
            rm -f {flag}
            echo "fatal: cannot open {private}/secret-plans.txt" >&2
            exit 128
        fi
    done
fi
exec {git} "$@"
"""
PRIVATE = "/home/somebody/private"
"""A path that the failing git prints; it must be seen nowhere."""


def search_path(home: Path) -> str:
    """PATH of a sandbox that finds the wrapper first."""
    return f"{home}/bin:{SEARCH_PATH}"


def failing_git(home: Path) -> None:
    """Make the wrapper. Raises OSError when there is no git."""
    git = shutil.which("git")
    if git is None:
        raise FileNotFoundError(None, "git is not installed", "git")
    directory = home / "bin"
    directory.mkdir()
    wrapper = directory / "git"
    flag = shlex.quote(str(_flag(home)))
    wrapper.write_text(_SCRIPT.format(flag=flag, private=PRIVATE, git=shlex.quote(git)))
    wrapper.chmod(0o700)


def arm(home: Path) -> None:
    """Make the next commit of a snapshot fail."""
    _flag(home).touch()


def _flag(home: Path) -> Path:
    return home / "fail-once"
