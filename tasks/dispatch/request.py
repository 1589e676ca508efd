"""The request of ``tool.dispatch``."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from worker.retrying.requests import After, Model, Reason, RunId, SandboxRequest, reject, validated
from worker.tools.manifest import NAME, EnvName

SECRETS_MAX = 32
Box = Annotated[str, StringConstraints(pattern=r"^[!-~]+$", max_length=65_536)]


class DispatchRequest(Model):
    """One call of a tool.

    ``tool`` pins a package by its digest; its manifest says what the call may do. ``dispatch_id`` is the caller's
    idempotency key within the run and ``issued_at`` (epoch seconds) when that key was made: both are required
    unless the tool only reads. ``timeout`` (seconds) may shorten the manifest's. ``secrets`` are sealed boxes.
    ``artifact_store`` takes an output that is too large for a result.
    """

    schema_: Literal[1] = Field(alias="schema")
    run_id: RunId
    sandbox: SandboxRequest
    tool: Annotated[str, StringConstraints(pattern=rf"^{NAME}@sha256:[0-9a-f]{{64}}$")]
    tool_store: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")] = "default"
    dispatch_id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}$")] | None = None
    issued_at: Annotated[float, Field(gt=0, le=2**40, allow_inf_nan=False)] | None = None
    arguments: Annotated[Any, Field(repr=False)] = Field(default_factory=dict)
    env: dict[EnvName, Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", max_length=32_768)]] = Field(
        default_factory=dict, max_length=64, repr=False
    )
    secrets: dict[EnvName, Box] = Field(default_factory=dict, max_length=SECRETS_MAX, repr=False)
    timeout: Annotated[int, Field(ge=1)] | None = None
    artifact_store: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")] = "default"
    after: After | None = None

    @field_validator("schema_", mode="before")
    @classmethod
    def _integer(cls, value: object) -> object:
        """``True`` and ``1.0`` equal 1 in Python; they are not the number 1 in JSON."""
        if type(value) is not int:
            raise reject(Reason.WRONG_TYPE)
        return value

    @model_validator(mode="after")
    def _each_variable_once(self) -> Self:
        if self.env.keys() & self.secrets.keys():
            raise reject(Reason.CONFLICT)
        return self


def parse(payload: object) -> DispatchRequest:
    """The request of a message.

    :raises InvalidRequest: names our field and a :class:`~worker.retrying.requests.Reason`.
    """
    return validated(DispatchRequest, payload)
