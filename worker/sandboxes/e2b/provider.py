"""The `e2b` provider."""

from worker.sandboxes.e2b.cloud import E2BCloud
from worker.sandboxes.hosted.provider import HostedProvider
from worker.sandboxes.settings import E2BSettings


class E2BProvider(HostedProvider):
    """Sandboxes of one E2B account."""

    def __init__(self, settings: E2BSettings) -> None:
        super().__init__(E2BCloud(settings), image=settings.template, allowed_images=settings.allowed_templates)
