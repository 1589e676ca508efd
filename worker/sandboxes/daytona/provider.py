"""The `daytona` provider."""

from worker.sandboxes.daytona.cloud import DaytonaCloud
from worker.sandboxes.hosted.provider import HostedProvider
from worker.sandboxes.settings import DaytonaSettings


class DaytonaProvider(HostedProvider):
    """Sandboxes of one Daytona organization."""

    def __init__(self, settings: DaytonaSettings) -> None:
        super().__init__(
            DaytonaCloud(settings), image=settings.snapshot or "", allowed_images=settings.allowed_snapshots
        )
