"""How many jobs may work on a provider at once, over all workers of an installation."""

from collections.abc import Mapping

from worker.stores.redis import Client, script


class SlotStore:
    """Slots by provider. A provider without a limit has endless ones; a holder that dies loses its slot."""

    def __init__(self, client: Client, *, prefix: str, limits: Mapping[str, int], lease: float) -> None:
        self._client = client
        self._holders = f"{prefix}:slots:"
        self._limits = limits
        self._lease = round(lease * 1000)
        self._take = script(client, "slot")

    def limited(self, provider: str) -> bool:
        """Whether the provider has a limit."""
        return provider in self._limits

    def take(self, provider: str, holder: str) -> bool:
        """Take a slot, or renew the one ``holder`` has; false when all are taken."""
        if not self.limited(provider):
            return True
        return bool(self._take(keys=[self._holders + provider], args=[holder, self._limits[provider], self._lease]))

    def free(self, provider: str, holder: str) -> None:
        """Give a slot back."""
        self._client.zrem(self._holders + provider, holder)
