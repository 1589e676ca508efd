"""The scripts that run in a sandbox: texts for ``sh -c``, made of the files in ``sh``."""

from functools import cache
from importlib.resources import files

CAPTURE = (
    "environment.sh",
    "report.sh",
    "lists.sh",
    "repository.sh",
    "salvage.sh",
    "stage.sh",
    "walk.sh",
    "globs.sh",
    "refs.sh",
    "bundle.sh",
    "quiesce.sh",
    "part.sh",
    "main.sh",
)
"""``main.sh`` comes last and is the only one that does something; it documents the arguments."""
BASELINE = ("environment.sh", "lists.sh", "repository.sh", "stage.sh", "tree.sh", "keep.sh")
"""The same method right after a clone."""
SWEEP = ("environment.sh", "quiesce.sh", "sweep.sh")


@cache
def script(*names: str) -> str:
    """POSIX shell (dash, bash, busybox) of these files."""
    folder = files(__package__) / "sh"
    return "".join(folder.joinpath(name).read_text() for name in names)
