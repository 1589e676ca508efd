"""The one exception class that clients see."""

from typing import Any

SCHEMA = "sandferry.failure/1"
"""Version of the payload; a client tells our failures from Celery's own by it."""


class TaskFailed(Exception):  # noqa: N818 - the name is part of the contract with clients
    """A task failed, or will be retried. The only argument is a JSON dict.

    Its keys: schema, code, category, cause, attempt, attempts, retryable, exhausted, next_eta, deadline_at, run_id;
    the two times are epoch seconds or ``null``. A client without this class reads ``result.args[0]["code"]``.
    """

    def __init__(self, payload: dict[str, Any]) -> None:
        super().__init__(payload)

    @property
    def payload(self) -> dict[str, Any]:
        """The JSON dict."""
        payload: dict[str, Any] = self.args[0]
        return payload

    def __str__(self) -> str:
        return str(self.payload.get("cause", ""))

    def __repr__(self) -> str:
        # Celery writes this into logs and events; Flower reads it (worker/observability/flowerevents.py).
        told = self.payload
        if told.get("next_eta") is None:
            return f"TaskFailed({str(self)!r})"
        numbers = f"attempt={told['attempt']}, attempts={told['attempts']}, next_eta={told['next_eta']}"
        return f"TaskFailed({str(self)!r}, {numbers})"
