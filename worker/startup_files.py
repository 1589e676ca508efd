"""Files and places that settings name, looked at before work is taken: what is missing would fail job after job."""

import stat
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from pathlib import Path

from worker.settings import Settings

PREFIX = "SANDFERRY_"
_NO_SETTINGS = (f"{PREFIX}TEST_",)
"""Variables of the test suite."""


def unusable(config: Settings) -> Iterator[tuple[str, str]]:
    """Yield what is set and cannot be used: (variable, what to do). No content is ever told."""
    for name, look in _LOOKS.items():
        found = look(config)
        if found is not None:
            yield f"{PREFIX}{name.upper()}", found


def missing(config: Settings) -> Iterator[tuple[str, str]]:
    """Yield what is not there yet and may still come: (variable, what to do)."""
    if config.keyring_file is not None and not _exists(config.keyring_file):
        yield f"{PREFIX}KEYRING_FILE", "does not exist: no credential can be used; make it with `sandferry keys new`"


def misspelt(environment: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield variables with our prefix that are no settings: (variable, advice)."""
    known = [f"{PREFIX}{name.upper()}" for name in Settings.model_fields]
    for variable in sorted(environment):
        name = variable.upper()
        if name.startswith(PREFIX) and name not in known and not name.startswith(_NO_SETTINGS):
            close = get_close_matches(name, known, n=1)
            yield variable, f"is no setting and has no effect; {f'is {close[0]} meant?' if close else 'unset it'}"


def sentry_dsn(config: Settings) -> str | None:
    """What is wrong with the DSN's file, if anything."""
    if config.sentry_dsn_file is None:
        return None
    from sentry_sdk.utils import BadDsn, Dsn  # noqa: PLC0415 - only where Sentry is set up

    text = _text(config.sentry_dsn_file)
    try:
        Dsn(text or "")
    except (BadDsn, ValueError):
        return "is no file with a DSN: copy the line from the project's settings in Sentry"
    return None


def _text(file: Path) -> str | None:
    """The text of a file for one short secret; ``None`` when it cannot be read or holds none."""
    try:
        return file.read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _exists(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:
        return True  # nobody may look: whoever opens it says so


def _key_of(name: str) -> Callable[[Settings], str | None]:
    def look(config: Settings) -> str | None:
        file: Path | None = getattr(config, name)
        return "cannot be read, or is empty" if file is not None and _text(file) is None else None

    return look


def _key_ring(config: Settings) -> str | None:
    if config.keyring_file is None or not _exists(config.keyring_file):
        return None  # one that is yet to be made is a notice: it is read anew by every job
    from worker.secrets.keyring import KeyRingError, load  # noqa: PLC0415 - worker memory is budgeted

    try:
        load(config.keyring_file)
    except KeyRingError as exc:
        return str(exc)
    return None


def _github_key(config: Settings) -> str | None:
    file = config.github_app_key_file
    if file is None:
        return None if config.github_app_id is None else "must be set with SANDFERRY_GITHUB_APP_ID, or neither"
    if config.github_app_id is None:
        return "is set without SANDFERRY_GITHUB_APP_ID"
    return None if "PRIVATE KEY-----" in (_text(file) or "") else "is no file with a private key (PEM)"


def _github_ca(config: Settings) -> str | None:
    if config.github_ca_file is None or "BEGIN CERTIFICATE" in (_text(Path(config.github_ca_file)) or ""):
        return None
    return "is no file with certificates (PEM)"


def _scratch(config: Settings) -> str | None:
    directory = config.scratch_dir
    return None if directory is None or directory.is_dir() else "is no directory: make it, or unset it"


def _place(name: str) -> Callable[[Settings], str | None]:
    """Look whether a directory that we make ourselves can be made: something else may be in its place."""

    def look(config: Settings) -> str | None:
        path: Path = getattr(config, name)
        try:
            nearest = next(each for each in (path, *path.parents) if each.exists())
            is_directory = stat.S_ISDIR(nearest.stat().st_mode)
        except OSError:
            is_directory = False
        return None if is_directory else "cannot be a directory: something else is in its place"

    return look


def _stores(name: str) -> Callable[[Settings], str | None]:
    """Look whether the file systems of a setting are known and installed; none of them is imported."""

    def look(config: Settings) -> str | None:
        places: dict[str, str] = getattr(config, name)
        schemes = {place.partition("://")[0] for place in places.values() if "://" in place} - {"file"}
        return next((found for scheme in sorted(schemes) if (found := _file_system(scheme)) is not None), None)

    return look


def _file_system(scheme: str) -> str | None:
    from fsspec import available_protocols, get_filesystem_class  # noqa: PLC0415 - only for places elsewhere

    if scheme not in available_protocols():
        return "names a kind of store that fsspec does not know"
    try:
        get_filesystem_class(scheme)
    except ImportError:
        return "names a kind of store whose package is not installed (`pip install s3fs` for s3://)"
    return None


_LOOKS: dict[str, Callable[[Settings], str | None]] = {
    "sentry_dsn_file": sentry_dsn,
    "keyring_file": _key_ring,
    "github_app_key_file": _github_key,
    "github_ca_file": _github_ca,
    "e2b_api_key_file": _key_of("e2b_api_key_file"),
    "daytona_api_key_file": _key_of("daytona_api_key_file"),
    "scratch_dir": _scratch,
    "diagnostics_dir": _place("diagnostics_dir"),
    "artifact_stores": _stores("artifact_stores"),
    "tool_stores": _stores("tool_stores"),
}
"""Setting -> what is wrong with what it names, or ``None``."""
