"""The environment of git on this worker: built from nothing. Pure but for ``PATH``."""

import os
from pathlib import Path

_CONFIG = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.bigFileThreshold": "16m",  # larger blobs are streamed
    "core.packedGitWindowSize": "32m",
    "protocol.allow": "never",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "pack.threads": "1",
    "index.threads": "1",
    "diff.external": "",
    "merge.renameLimit": "1000",
    "merge.conflictStyle": "merge",
    "commit.gpgSign": "false",
    "core.logAllRefUpdates": "always",
}
_IDENTITY = {
    "GIT_AUTHOR_NAME": "Sandferry",
    "GIT_AUTHOR_EMAIL": "sandferry@localhost",
    "GIT_COMMITTER_NAME": "Sandferry",
    "GIT_COMMITTER_EMAIL": "sandferry@localhost",
}


def built(git_dir: Path, alternates: tuple[Path, ...]) -> dict[str, str]:
    """The environment of a git in ``git_dir`` that may read the object directories ``alternates``."""
    config = {
        name: text
        for place, (key, value) in enumerate(_CONFIG.items())
        for name, text in ((f"GIT_CONFIG_KEY_{place}", key), (f"GIT_CONFIG_VALUE_{place}", value))
    }
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "HOME": "/nonexistent",
        "GIT_DIR": str(git_dir),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(f'"{_quoted(path)}"' for path in alternates),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": str(len(_CONFIG)),
        **config,
        **_IDENTITY,
    }


def _quoted(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace('"', '\\"')
