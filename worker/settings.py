"""What an operator sets, all of it by environment variables with the prefix ``SANDFERRY_``.

Secrets come from files (``*_FILE``): a variable is inherited by every subprocess, a file is not.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from worker.setting_kinds import (
    Broker,
    Digests,
    Directories,
    Directory,
    Engine,
    Hosts,
    Limits,
    Names,
    PlainAddress,
    Seconds,
    Store,
    Stores,
    WebAddress,
    pairs,
    parts,
)

TOOL_MARGIN = 120.0
"""Seconds that a call of a tool has beyond the tool's own timeout (design, section 3)."""


class Settings(BaseSettings):
    """Every setting, its unit and its default."""

    model_config = SettingsConfigDict(
        env_prefix="SANDFERRY_", frozen=True, extra="ignore", hide_input_in_errors=True, use_attribute_docstrings=True
    )

    # Where messages, results and records live. The record store must be Redis or Valkey.
    broker_url: Broker = "redis://127.0.0.1:6379/0"
    """Where messages travel: Redis or Valkey (`redis://`), or RabbitMQ (`amqp://`; not tried yet)."""
    result_backend: str | None = None
    """Defaults to the broker when that is Redis, else to ``state_url``."""
    state_url: Store | None = None
    """Attempt records, events, leases. Defaults to the broker when that is Redis."""
    key_prefix: str = Field("sandferry", pattern=r"^[A-Za-z0-9_.-]{1,64}$")
    """Starts every key of the record store, so that two installations can share a server."""

    # Time. Seconds throughout.
    clone_deadline: Seconds = 300
    """All attempts of a clone together, unless the request says otherwise."""
    deadline_max: Seconds = 3600
    """The longest deadline a request may ask for."""
    lease: Seconds = Field(30, ge=3)
    """A body whose worker has not been heard of for this long is given to another."""
    sweep_every: Seconds = Field(10, ge=0.1)
    """How often beat asks for the sweep that brings back lapsed tasks and ends sandboxes."""
    queue_wait: Seconds = 3600
    """A retry that waited longer than this past its due time is given up; a first message, past its `sent_at`."""
    visibility_timeout: Seconds = 7200
    """Redis only: when the broker hands an unacknowledged message out again (kombu's term)."""
    result_expires: Seconds = 86_400
    """How long a result can be read."""
    record_ttl: Seconds = 172_800
    """How long an attempt record outlives its last change; longer than results live."""
    events_ttl: Seconds = 604_800
    """How long a run's timeline outlives its last event."""
    soft_shutdown: Seconds = 25
    """How long running tasks may still end after SIGQUIT, or SIGTERM under REMAP_SIGTERM."""
    keep_default: Seconds = 3600
    """How long a sandbox is kept between jobs when a request does not say."""
    keep_max: Seconds = 86_400
    """The longest time a request may keep a sandbox."""
    replication_horizon: Seconds = 60
    """How long GitHub may take to know a token it has minted (kargo#5610, auth-app.js#65)."""

    eta_task_limit: int = Field(20_000, ge=100, le=10_000_000)
    """Waiting retries a worker holds (8.4 KB each); past it new work waits behind them."""

    # Sandboxes.
    allow_local: bool = False
    """The local driver runs commands as the worker's own user; for development."""
    local_root: Directory = Path("/var/lib/sandferry/local")
    """Where local sandboxes lie (0700)."""
    docker_url: Engine | None = None
    """The engine; defaults to ``DOCKER_HOST`` or the usual socket."""
    docker_image: str = Field("sandferry/sandbox:latest", min_length=1)
    """Image of a sandbox whose request names none."""
    docker_images: Names = ()
    """Patterns of further images that a request may name."""
    docker_network: str = Field("bridge", min_length=1)
    """Network of every sandbox, as `docker run --network` takes it."""
    e2b_api_key_file: Path | None = None
    """A file with the key of the E2B account; without it the provider is `not_configured`."""
    e2b_template: str = Field("base", min_length=1)
    """Template of a sandbox whose request names none."""
    e2b_templates: Names = ()
    """Patterns of further templates that a request may name."""
    e2b_domain: str | None = None
    """For a service of your own; so are the two addresses. Defaults to ``e2b.app``."""
    e2b_api_url: WebAddress | None = None
    """The control plane's address."""
    e2b_sandbox_url: WebAddress | None = None
    """Where the daemons of all sandboxes answer."""
    e2b_lease_max: int = Field(86_400, ge=60, le=2_592_000)
    """Seconds of the longest lease your plan allows: 86400, or 3600 on the free one."""
    daytona_api_key_file: Path | None = None
    """A file with the key of the Daytona organization; without it the provider is `not_configured`."""
    daytona_snapshot: str | None = None
    """Snapshot of a sandbox whose request names none; defaults to the organization's."""
    daytona_snapshots: Names = ()
    """Patterns of further snapshots that a request may name."""
    daytona_api_url: WebAddress | None = None
    """For a service of your own. Defaults to ``https://app.daytona.io/api``."""
    daytona_target: str | None = None
    """Region; defaults to the organization's."""
    provider_limits: Limits = Field(default_factory=dict)
    """Jobs that may work on a provider at once, over all workers: ``e2b=20,daytona=10``. More wait."""

    # What comes back.
    artifact_stores: Stores = Field(default_factory=lambda: {"default": "file:///var/lib/sandferry/artifacts"})
    """``name=URL`` pairs, comma-separated; URLs of fsspec (``s3://bucket/path``). Requests give the name."""
    host_repositories: Directories = Field(default_factory=dict)
    """``name=/path`` pairs, comma-separated: git repositories that a copy-back may deliver to."""
    unsafe_links: Literal["refuse", "report"] = "refuse"
    """Symbolic links that lead out of the work tree: ``refuse`` leaves those of the files behind, named, and takes
    in no commit that holds one; ``report`` takes them all, and counts them."""
    scratch_dir: Directory | None = None
    """Where a worker unpacks and checks what comes back; the system's temporary directory by default."""

    # Git.
    http_hosts: Hosts = ()
    """``host`` or ``host:port`` for which plain http is allowed. Tokens travel in the clear to them."""
    git_proxy: PlainAddress | None = None
    """HTTP proxy for git in sandboxes and for GitHub's API, without a password: a sandbox could read it."""
    git_ca_file: str | None = None
    """A path inside the sandbox."""

    # Managed tools.
    tool_stores: Stores = Field(default_factory=dict)
    """Where tool packages are kept: names and fsspec URLs or paths, `default=/srv/sandferry/tools`."""
    tools_allowed: Digests = ()
    """Digests (`sha256:...`) of the tools that may run; none means every tool of the stores."""
    tool_timeout_max: Seconds = 600
    """The longest timeout that a tool's manifest may have."""
    tool_package_max: int = Field(32 * 1024 * 1024, ge=1024, le=1024**3)
    """Bytes of a tool's archive."""
    tool_output_inline: int = Field(256 * 1024, ge=1024, le=64 * 1024**2)
    """Bytes of a tool's output that a result holds; more goes to an artifact store."""
    ledger_ttl: Seconds = 604_800
    """How long the ledger knows a call after its last change; an older one that writes is not run again."""

    # Secrets.
    keyring_file: Path | None = None
    """The key ring that opens sealed secrets (0600); `sandferry keys new` makes it."""
    github_app_id: str | None = None
    """The GitHub App that mints tokens."""
    github_app_key_file: Path | None = None
    """Its private key, PEM."""
    github_api_url: PlainAddress = "https://api.github.com"
    """GitHub's API, or that of an Enterprise server."""
    github_ca_file: str | None = None
    """A PEM file on the worker that GitHub's API is checked against, for an Enterprise server."""
    github_url: PlainAddress = "https://github.com"
    """Only repositories beneath this address are given a minted token."""

    # Watching.
    diagnostics_dir: Directory = Path("/var/lib/sandferry/diagnostics")
    """Redacted tails of failed commands, for operators of this machine (0700)."""
    diagnostics_max_bytes: int = Field(64 * 1024 * 1024, ge=1024 * 1024)
    """All tails together; the oldest go first."""
    diagnostics_ttl: Seconds = 604_800
    """How long a tail is kept."""
    log_format: Literal["auto", "json", "console"] = "auto"
    """One JSON object a line, or lines for a person; ``auto``: for a person when stderr is a terminal."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """The least level that is written."""
    sentry_dsn_file: Path | None = None
    """A file with the DSN of Sentry; without it nothing is sent."""
    flower_users_file: Path | None = None
    """Who may look at Flower: `user:password` lines (0600). Made with a password of its own if it does not exist."""
    metrics_port: int | None = Field(None, ge=1, le=65535)
    """TCP port on which a worker serves Prometheus metrics; each worker of a machine needs its own. None: off."""
    metrics_address: str = Field("127.0.0.1", min_length=1)
    """Where that port listens."""

    @model_validator(mode="before")
    @classmethod
    def _empty_is_unset(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Drop what is empty and may be unset: `compose.yaml` and `.env` files pass a variable on that nobody set."""
        optional = {name for name, field in cls.model_fields.items() if field.default is None}
        return {name: value for name, value in values.items() if value != "" or name not in optional}

    @field_validator(
        "docker_images", "e2b_templates", "daytona_snapshots", "http_hosts", "tools_allowed", mode="before"
    )
    @classmethod
    def _read_list(cls, value: Any) -> Any:
        return parts(value) if isinstance(value, str) else value

    @field_validator("artifact_stores", "host_repositories", "tool_stores", "provider_limits", mode="before")
    @classmethod
    def _read_pairs(cls, value: Any) -> Any:
        return pairs(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check(self) -> "Settings":
        if self.visibility_timeout <= self.deadline_max + 300:
            raise ValueError(
                "visibility_timeout must exceed deadline_max by more than 300 s, or Redis hands running tasks out again"
            )
        if self.visibility_timeout <= self.longest_job + 300:
            raise ValueError(
                "visibility_timeout must exceed tool_timeout_max by more than 420 s, "
                "or Redis hands running tools out again"
            )
        if self.record_ttl <= max(self.visibility_timeout, self.result_expires):
            raise ValueError(
                "record_ttl must exceed visibility_timeout and result_expires, or a late copy finds no record"
            )
        if not is_redis(self.records_url):
            raise ValueError("state_url must be a redis:// or rediss:// address when the broker is not Redis")
        return self

    @property
    def longest_job(self) -> float:
        """Seconds that the longest job may take, waits between its attempts included."""
        return max(self.deadline_max, self.tool_timeout_max + TOOL_MARGIN)

    @property
    def records_url(self) -> str:
        """Where the attempt records live."""
        return self.state_url or self.broker_url

    @property
    def results_url(self) -> str:
        """Where Celery keeps results."""
        return self.result_backend or self.records_url


def is_redis(url: str) -> bool:
    """Whether ``url`` names a Redis or Valkey server."""
    return url.partition("://")[0] in {"redis", "rediss", "unix", "redis+socket"}


@lru_cache(maxsize=1)
def settings() -> Settings:
    """The settings of this process, read once."""
    return Settings()
