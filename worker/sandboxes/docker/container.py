"""What a container is made of. Pure; ``docs/sandboxes.md`` gives the reasons to operators."""

import time
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from worker.failures.model import InvalidRequest
from worker.sandboxes.base import MEBIBYTE, Layout, Spec
from worker.sandboxes.docker.scripts import MAIN
from worker.sandboxes.environment import built_env
from worker.sandboxes.labels import digest
from worker.sandboxes.settings import DockerSettings

LABEL_CREATED = "sandferry.created"
"""When the create was sent, in epoch nanoseconds: the engine lists whole seconds."""

LAYOUT = Layout(workspace="/workspace", repos="/repos", scratch="/var/lib/sandferry")
"""On the container's own disk: a tmpfs would be empty after a restart."""

CAPABILITIES: Mapping[str, str] = {
    "KILL": "root may end a process of another user: deadlines, cancellation",
    "DAC_OVERRIDE": "root may read files of another user: capture of a workspace",
    "CHOWN": "package installs, and tools that hand files to another user",
    "FOWNER": "chmod and utime on such files: tar, package installs",
    "SETUID": "apt and su change the user",
    "SETGID": "apt and su change the group",
}
"""Capabilities left to a container that is not strict, with what each is for. All others are dropped."""


def container_name(labels: Mapping[str, str]) -> str:
    """One name per create: the engine itself refuses a second container of it."""
    return f"sandferry-{digest(labels)}"


def allowed_image(spec: Spec, settings: DockerSettings) -> str:
    """The image to use.

    :raises InvalidRequest: the spec names one that settings do not allow (``image_not_allowed``).
    """
    image = spec.image or settings.image
    if image != settings.image and not any(fnmatchcase(image, pattern) for pattern in settings.allowed_images):
        raise InvalidRequest("sandbox_spec_image", "image_not_allowed")
    return image


def container_config(spec: Spec, labels: Mapping[str, str], settings: DockerSettings) -> dict[str, Any]:
    """The engine's ``ContainerConfig``, without the host's part."""
    return {
        "Image": allowed_image(spec, settings),
        "Entrypoint": ["/bin/sh", "-c", MAIN],
        "Cmd": [],
        "Env": [f"{key}={value}" for key, value in built_env(spec.env).items()],
        "Labels": {**labels, LABEL_CREATED: f"{time.time_ns():020d}"},
        "WorkingDir": "/",
        "Healthcheck": {"Test": ["NONE"]},
    }


def host_config(spec: Spec, settings: DockerSettings) -> dict[str, Any]:
    """The engine's ``HostConfig``: limits and what is taken away."""
    memory = (spec.memory_mb or settings.memory_mb) * MEBIBYTE
    return {
        "Init": True,
        "Memory": memory,
        "MemorySwap": memory,  # equal: no swap on top
        "NanoCpus": int((spec.cpus or settings.cpus) * 1e9),
        "PidsLimit": spec.pids or settings.pids,
        "CapDrop": ["ALL"],
        "CapAdd": [] if spec.strict else list(CAPABILITIES),
        "SecurityOpt": ["no-new-privileges"],
        "NetworkMode": settings.network,
        "RestartPolicy": {"Name": "no"},
    }
