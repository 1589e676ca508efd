"""The requests of `sandbox.extend` and `sandbox.release`."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from worker.retrying.requests import KEEP_LIMIT, Model, RunId, SandboxRequest, Seconds


class ExistingSandbox(Model):
    """A sandbox that was made for this run."""

    provider: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
    id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$")]

    def wanted(self) -> SandboxRequest:
        """The same, as jobs name it."""
        return SandboxRequest(provider=self.provider, id=self.id)


class ReleaseRequest(Model):
    """End a sandbox of this run. One that is gone already is a success."""

    schema_: Literal[1] = Field(alias="schema")
    run_id: RunId
    sandbox: ExistingSandbox


class ExtendRequest(ReleaseRequest):
    """Keep a sandbox of this run for at least ``seconds`` from now."""

    seconds: Annotated[Seconds, Field(le=KEEP_LIMIT)]
