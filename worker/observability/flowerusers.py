"""Who may look at Flower."""

import os
import secrets
import sys
from pathlib import Path

ADVICE = "flower: set SANDFERRY_FLOWER_USERS_FILE to a file of user:password lines; one that does not exist is made"


def users(path: Path | None) -> list[str]:
    """Read the ``user:password`` lines of ``path``; makes it (0600) with a password nobody knows if it is not there.

    Ends the process with advice when there is no path, or nobody in the file: nothing is shown to everybody.
    """
    if path is None:
        sys.exit(ADVICE)
    if not path.exists():
        _make(path)
    found = [line for line in path.read_text(encoding="utf-8").split() if ":" in line.strip(":")]
    if not found:
        sys.exit(ADVICE)
    return found


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    line = f"sandferry:{secrets.token_urlsafe(18)}\n"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(line)
    sys.stderr.write(f"flower: made {path}, with a password for the user sandferry\n")
