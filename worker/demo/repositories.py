"""The repositories that the demo's GitHub serves: its own, or the user's."""

import os
import subprocess
from pathlib import Path

OWNER = "acme"
PRIVATE = "ferry"
PUBLIC = "pier"

_FILES = {
    "README.md": "# Ferry\n\nA small private repository.\n",
    "ferry/__init__.py": '"""Carries things across."""\n',
    "ferry/route.py": 'def route(start: str, end: str) -> str:\n    return f"{start} -> {end}"\n',
    "tests/test_route.py": "from ferry.route import route\n\nassert route('a', 'b') == 'a -> b'\n",
}


def make(root: Path, name: str) -> None:
    """Make a bare repository ``<root>/acme/<name>.git`` with one commit of a few files."""
    tree = root / "work" / name
    for path, text in _FILES.items():
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    _git("init", "--quiet", "--initial-branch=main", cwd=tree)
    _git("add", ".", cwd=tree)
    _git("commit", "--quiet", "-m", "First crossing", cwd=tree)
    mirror(root, name, tree)


def mirror(root: Path, name: str, source: Path) -> None:
    """Serve a copy of the repository at ``source`` as ``acme/<name>``. Raises OSError if it is none."""
    target = root / OWNER / f"{name}.git"
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        _git("clone", "--quiet", "--mirror", "--", str(source.resolve()), str(target), cwd=root)
    except subprocess.CalledProcessError:
        raise NotADirectoryError(None, "not a git repository", str(source)) from None


def _git(*arguments: str, cwd: Path) -> None:
    identity = {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in _WHO.items()}
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    # The user's repository may belong to somebody else; the demo only reads it.
    trust = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd), **identity, **quiet, **trust}
    subprocess.run(["git", *arguments], cwd=cwd, env=env, check=True, capture_output=True)


_WHO = {"NAME": "Demo", "EMAIL": "demo@sandferry.invalid"}
