"""What the drivers need to know; plain dataclasses, filled by the application's settings."""

from dataclasses import dataclass, field
from pathlib import Path


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
class ProviderSettings:
    """Settings of all drivers."""

    local: LocalSettings = field(default_factory=LocalSettings)
    docker: DockerSettings = field(default_factory=DockerSettings)
