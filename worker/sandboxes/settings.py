"""What the drivers need to know; plain dataclasses, filled by the application's settings."""

from dataclasses import dataclass, field
from pathlib import Path

from worker.failures.model import InvalidRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSettings:
    """The local driver. It isolates nothing, so it is refused unless ``allowed``."""

    allowed: bool = False
    root: Path = Path("/var/tmp/sandferry")  # noqa: S108 - made 0700; survives a reboot, as work in progress should


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerSettings:
    """The docker driver. ``docs/sandboxes.md`` gives the reason of every default."""

    url: str | None = None
    """The engine's address (``unix:///run/docker.sock``); ``None`` takes ``DOCKER_HOST`` or that socket."""
    api_version: str | None = None
    """Pinned API version (``1.41``); ``None`` asks the engine once per process."""
    image: str = "sandferry-sandbox:latest"
    """Image of a spec that names none."""
    allowed_images: tuple[str, ...] = ()
    """``fnmatch`` patterns of the images a request may name besides ``image``."""
    network: str = "bridge"
    memory_mb: int = 2048
    cpus: float = 2.0
    pids: int = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class E2BSettings:
    """The e2b driver. Addresses are for a service of one's own; ``None`` is the SDK's own default."""

    api_key_file: Path | None = None
    template: str = "base"
    """Template of a spec that names none."""
    allowed_templates: tuple[str, ...] = ()
    """``fnmatch`` patterns of the templates a request may name besides ``template``."""
    domain: str | None = None
    api_url: str | None = None
    sandbox_url: str | None = None
    lease_max: int = 86_400
    """Seconds; what the account's plan allows for one lease (24 hours, or 1 hour on the free plan)."""

    def api_key(self) -> str:
        """The key, read anew: it may be rotated.

        :raises InvalidRequest: there is none (``not_configured``).
        """
        return _key(self.api_key_file)


@dataclass(frozen=True, slots=True, kw_only=True)
class DaytonaSettings:
    """The daytona driver. ``None`` is the SDK's or the organization's own default."""

    api_key_file: Path | None = None
    snapshot: str | None = None
    """Snapshot of a spec that names none."""
    allowed_snapshots: tuple[str, ...] = ()
    """``fnmatch`` patterns of the snapshots a request may name besides ``snapshot``."""
    api_url: str | None = None
    target: str | None = None

    def api_key(self) -> str:
        """The key.

        :raises InvalidRequest: there is none (``not_configured``).
        """
        return _key(self.api_key_file)


def _key(file: Path | None) -> str:
    try:
        text = file.read_text(encoding="ascii").strip() if file is not None else ""
    except (OSError, UnicodeDecodeError):
        text = ""
    if not text:
        raise InvalidRequest("sandbox_provider", "not_configured")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """Settings of all drivers."""

    local: LocalSettings = field(default_factory=LocalSettings)
    docker: DockerSettings = field(default_factory=DockerSettings)
    daytona: DaytonaSettings = field(default_factory=DaytonaSettings)
    e2b: E2BSettings = field(default_factory=E2BSettings)
