"""What the sweep is asked: nothing."""

from typing import Any, Literal

from pydantic import Field

from worker.retrying.requests import Model, validated


class SweepRequest(Model):
    """One sweep; beat sends it."""

    version: Literal[1] = Field(alias="schema")


def parse(payload: Any) -> SweepRequest:
    """Validate; raises InvalidRequest."""
    return validated(SweepRequest, payload)
