"""Sentry: redacted breadcrumbs and failures, nothing else."""

from collections.abc import Mapping
from typing import Any

import sentry_sdk

from worker.settings import Settings

_NEVER = ("args", "kwargs", "request", "celery-job")


def init(config: Settings) -> None:
    """Start the SDK; must happen before the pool forks. Without a DSN it stays off."""
    if config.sentry_dsn_file is None:
        return
    sentry_sdk.init(
        dsn=config.sentry_dsn_file.read_text().strip(),
        include_local_variables=False,
        send_default_pii=False,
        max_request_body_size="never",
        before_send=_scrub,
        before_breadcrumb=_only_ours,
    )


def breadcrumb(name: str, data: Mapping[str, Any]) -> None:
    """Leave one breadcrumb for an event; ``data`` is the event's allowed part."""
    sentry_sdk.add_breadcrumb(category="sandferry", message=name, data=dict(data), level="info")


def _only_ours(crumb: dict[str, Any], _hint: dict[str, Any]) -> dict[str, Any] | None:
    return crumb if crumb.get("category") == "sandferry" else None


def _scrub(event: Any, _hint: dict[str, Any]) -> Any:
    extra = event.get("extra", {})
    for key in _NEVER:
        extra.pop(key, None)
    return event
