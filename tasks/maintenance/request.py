"""What the sweep is asked: nothing."""

from typing import Any

from pydantic import Field

from worker.retrying.requests import Model, Schema, validated


class SweepRequest(Model):
    """One sweep; beat sends it."""

    schema_: Schema = Field(alias="schema")


def parse(payload: Any) -> SweepRequest:
    """Validate; raises InvalidRequest."""
    return validated(SweepRequest, payload)
