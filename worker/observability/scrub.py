"""What a Sentry event may hold: an allow-list, so that what nobody thought of stays here. Pure."""

from collections.abc import Mapping
from typing import Any

from worker.secrets.redaction import Redactor
from worker.stores.events import allowed

OURS = "sandferry"
"""Logger of our own events, and category of our breadcrumbs."""

_KEPT = ("event_id", "timestamp", "level", "platform", "sdk", "release", "environment", "server_name", "logger")
_FRAME = ("module", "function", "filename", "lineno", "in_app")
_shapes = Redactor()


def event(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Copy the part of an event that may leave.

    Of an event of ours: message, fingerprint, tags, context. Of any other (a crash of the process, a critical log
    line): the constant of the message, and class and frames of the exceptions, neither their text nor variables.
    """
    seen = {key: raw[key] for key in _KEPT if key in raw}
    seen["breadcrumbs"] = {"values": [crumb for one in _values(raw.get("breadcrumbs")) if (crumb := breadcrumb(one))]}
    if raw.get("logger") == OURS:
        return seen | {
            "message": _shapes.redact(str(raw.get("message", ""))),
            "fingerprint": [_shapes.redact(str(part)) for part in raw.get("fingerprint", ())],
            "tags": {key: _shapes.redact(str(value)) for key, value in (raw.get("tags") or {}).items()},
            "contexts": {OURS: (raw.get("contexts") or {}).get(OURS, {})},
        }
    if "logentry" in raw:
        # Without its parameters: a template is a constant of somebody's source.
        seen["logentry"] = {"message": str(raw["logentry"].get("message", ""))}
    if "exception" in raw:
        seen["exception"] = {"values": [_exception(one) for one in _values(raw["exception"])]}
    return seen


def breadcrumb(raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """Copy a breadcrumb of ours; ``None`` for any other."""
    if raw.get("category") != OURS:
        return None
    data = allowed(raw.get("data") or {})
    return {key: raw[key] for key in ("timestamp", "category", "message", "level") if key in raw} | {"data": data}


def _exception(raw: Mapping[str, Any]) -> dict[str, Any]:
    frames = (raw.get("stacktrace") or {}).get("frames") or ()
    kept = [{key: frame[key] for key in _FRAME if key in frame} for frame in frames]
    return {"type": raw.get("type"), "module": raw.get("module"), "stacktrace": {"frames": kept}}


def _values(raw: Any) -> list[Mapping[str, Any]]:
    return list(raw.get("values") or ()) if isinstance(raw, Mapping) else list(raw or ())
