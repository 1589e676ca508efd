"""Whether whoever runs `sandferry doctor` may write where the worker is to write."""

import os
from pathlib import Path

from worker.commands.checks import Finding
from worker.settings import Settings


def places(config: Settings) -> list[Finding]:
    """The directories of this machine that settings name; they are made when they are first needed."""
    wanted = [("SANDFERRY_DIAGNOSTICS_DIR", config.diagnostics_dir)]
    wanted += [("SANDFERRY_LOCAL_ROOT", config.local_root)] if config.allow_local else []
    stores = (("SANDFERRY_ARTIFACT_STORES", config.artifact_stores), ("SANDFERRY_TOOL_STORES", config.tool_stores))
    for variable, urls in stores:
        paths = (url.removeprefix("file://") for url in urls.values())
        wanted += [(variable, Path(path)) for path in paths if path.startswith("/")]
    advice = "this user may not write there: give the worker's user the directory, or name another"
    return [Finding(variable, "warning", advice) for variable, path in wanted if not _writable(path)]


def _writable(path: Path) -> bool:
    there = next((each for each in (path, *path.parents) if os.path.lexists(each)), path)
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)
