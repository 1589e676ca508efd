"""The requests of `sandbox.extend` and `sandbox.release`."""

from typing import Annotated

from pydantic import Field

from worker.retrying.requests import KEEP_LIMIT, ExistingSandbox, Model, RunId, Schema, Seconds


class ReleaseRequest(Model):
    """End a sandbox of this run. One that is gone already is a success."""

    schema_: Schema = Field(alias="schema")
    run_id: RunId
    sandbox: ExistingSandbox


class ExtendRequest(ReleaseRequest):
    """Keep a sandbox of this run for at least ``seconds`` from now."""

    seconds: Annotated[Seconds, Field(le=KEEP_LIMIT)]
