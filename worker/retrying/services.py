"""What the tasks of a process stand on, made on first use: nothing connects or imports an SDK before."""

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from worker.failures.model import InvalidRequest
from worker.observability.logs import logger
from worker.sandboxes.registry import Registry
from worker.sandboxes.settings import DaytonaSettings, DockerSettings, E2BSettings, LocalSettings, ProviderSettings
from worker.settings import Settings, settings
from worker.stores.attempts import AttemptStore
from worker.stores.diagnostics import DiagnosticsStore
from worker.stores.events import EventStore
from worker.stores.ledger import Ledger
from worker.stores.operations import OperationStore
from worker.stores.redis import Client, connect
from worker.stores.sandboxes import SandboxRegistry
from worker.stores.slots import SlotStore

if TYPE_CHECKING:
    from worker.secrets.github import GitHubApp
    from worker.secrets.keys import KeyRing
    from worker.stores.artifacts import ArtifactStore
    from worker.tools.store import PackageStore


log = logger(__name__)


class Services:
    """Stores, providers and keys of one installation."""

    def __init__(self, config: Settings) -> None:
        self.settings = config
        self._tools: dict[str, PackageStore] = {}

    @cached_property
    def client(self) -> Client:
        """The connection to the record store."""
        return connect(self.settings.records_url)

    @cached_property
    def attempts(self) -> AttemptStore:
        """The attempt records."""
        config = self.settings
        return AttemptStore(self.client, prefix=config.key_prefix, lease=config.lease, record_ttl=config.record_ttl)

    @cached_property
    def ledger(self) -> Ledger:
        """The calls of tools."""
        return Ledger(self.client, prefix=self.settings.key_prefix, ttl=self.settings.ledger_ttl)

    def tools(self, name: str) -> "PackageStore":
        """The package store of this name. Raises InvalidRequest when settings have none."""
        from worker.tools.store import package_store  # noqa: PLC0415 - worker memory is budgeted

        if name not in self._tools:
            self._tools[name] = package_store(self.settings.tool_stores, name)
        return self._tools[name]

    @cached_property
    def events(self) -> EventStore:
        """The timelines of runs."""
        return EventStore(self.client, prefix=self.settings.key_prefix, ttl=self.settings.events_ttl)

    @cached_property
    def sandboxes(self) -> SandboxRegistry:
        """The sandboxes we made."""
        return SandboxRegistry(self.client, prefix=self.settings.key_prefix)

    @cached_property
    def slots(self) -> SlotStore:
        """How many jobs work on each provider."""
        config = self.settings
        limits = {str(name): limit for name, limit in config.provider_limits.items()}
        return SlotStore(self.client, prefix=config.key_prefix, limits=limits, lease=config.lease)

    @cached_property
    def providers(self) -> Registry:
        """The sandbox drivers."""
        config = self.settings
        return Registry(
            ProviderSettings(
                local=LocalSettings(allowed=config.allow_local, root=config.local_root),
                docker=DockerSettings(
                    url=config.docker_url,
                    image=config.docker_image,
                    allowed_images=config.docker_images,
                    network=config.docker_network,
                ),
                daytona=DaytonaSettings(
                    api_key_file=config.daytona_api_key_file,
                    snapshot=config.daytona_snapshot,
                    allowed_snapshots=config.daytona_snapshots,
                    api_url=config.daytona_api_url,
                    target=config.daytona_target,
                ),
                e2b=E2BSettings(
                    api_key_file=config.e2b_api_key_file,
                    template=config.e2b_template,
                    allowed_templates=config.e2b_templates,
                    domain=config.e2b_domain,
                    api_url=config.e2b_api_url,
                    sandbox_url=config.e2b_sandbox_url,
                    lease_max=config.e2b_lease_max,
                ),
            )
        )

    def account_keys(self, provider: str) -> list[str]:
        """The key of our account with a provider: an error it answers with may say it back."""
        config = self.settings
        file = {"e2b": config.e2b_api_key_file, "daytona": config.daytona_api_key_file}.get(provider)
        try:
            return [] if file is None else [file.read_text(encoding="ascii").strip()]
        except (OSError, UnicodeDecodeError):
            return []

    @property
    def keyring(self) -> "KeyRing":
        """The keys that open sealed secrets, as they are now: a rotation needs no restart.

        Raises InvalidRequest when the operator has set none, or none that can be used.
        """
        from worker.secrets.keyring import KeyRingError, load  # noqa: PLC0415 - worker memory is budgeted

        if self.settings.keyring_file is None:
            raise InvalidRequest("credential", "not_configured")
        try:
            return load(self.settings.keyring_file)
        except (KeyRingError, OSError) as exc:
            log.error("key ring not usable", exception=type(exc).__name__)  # noqa: TRY400 - doctor says more
        raise InvalidRequest("credential", "not_configured")

    @cached_property
    def github(self) -> "GitHubApp":
        """The App that mints tokens. Raises InvalidRequest when the operator has set none."""
        from worker.secrets.github import GitHubApp  # noqa: PLC0415 - worker memory is budgeted
        from worker.secrets.secret import Secret  # noqa: PLC0415 - same

        config = self.settings
        if config.github_app_id is None or config.github_app_key_file is None:
            raise InvalidRequest("credential", "not_configured")
        key = Secret(config.github_app_key_file.read_text(encoding="ascii"))
        return GitHubApp(
            config.github_app_id, key, config.github_api_url, proxy=config.git_proxy, ca_file=config.github_ca_file
        )

    @cached_property
    def operations(self) -> OperationStore:
        """The records of copy-backs."""
        config = self.settings
        return OperationStore(
            self.client, prefix=config.key_prefix, lease=config.lease * 2, record_ttl=config.events_ttl
        )

    def artifact_store(self, name: str) -> "ArtifactStore":
        """The store that the operator calls ``name``. Raises InvalidRequest when there is none."""
        from worker.stores.artifacts import artifact_store  # noqa: PLC0415 - worker memory is budgeted

        return artifact_store(self.settings.artifact_stores, name)

    @cached_property
    def diagnostics(self) -> DiagnosticsStore:
        """The tails of failed commands."""
        config = self.settings
        return DiagnosticsStore(
            config.diagnostics_dir, max_bytes=config.diagnostics_max_bytes, ttl=config.diagnostics_ttl
        )


@lru_cache(maxsize=1)
def services() -> Services:
    """The services of this process."""
    return Services(settings())
