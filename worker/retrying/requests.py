"""What the requests of all jobs share: strict models, and errors that name a field and never a value."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from worker.failures.model import InvalidRequest
from worker.retrying.message import RUN_ID
from worker.sandboxes.base import Spec

KEEP_LIMIT = 30 * 86_400
"""Seconds; no sandbox is kept for longer, whatever the settings say."""
DEADLINE_LIMIT = 86_400
"""Seconds; no job is given longer, whatever the settings say."""

RunId = Annotated[str, StringConstraints(pattern=f"^{RUN_ID.pattern}$")]
"""Groups everything of one agent run; becomes a label of the sandbox."""
ProviderName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
SandboxId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$")]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Deadline = Annotated[Seconds, Field(le=DEADLINE_LIMIT)]
"""Seconds that all attempts of a job may take together."""


class Reason(StrEnum):
    """Why a request cannot be served. Closed: no other word leaves the worker."""

    MISSING = "missing"
    UNKNOWN_FIELD = "unknown_field"
    WRONG_TYPE = "wrong_type"
    BAD_VALUE = "bad_value"
    CONFLICT = "conflict"
    """Fields that exclude each other were given together, or none of several of which one is needed."""
    URL_SCHEME = "url_scheme"
    """Neither https, nor http to a host for which the operator allows it."""
    URL_USERINFO = "url_userinfo"
    """A user name or a password in a URL; credentials have a field of their own."""
    UNSAFE_PATH = "unsafe_path"
    """An owner or a repository that is no safe directory name."""
    FILTER_WITH_CREDENTIAL = "filter_with_credential"
    """A partial clone fetches again later, when the credential is gone."""


class Model(BaseModel):
    """Base of every request model: nothing unknown, nothing converted, nothing changed afterwards."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class SpecRequest(Model):
    """A sandbox to be made; sizes in mebibytes, ``ttl`` in seconds. What is left out is the operator's."""

    image: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$")] | None = None
    env: dict[
        Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")],
        Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", max_length=32_768)],
    ] = Field(default_factory=dict, max_length=256, repr=False)
    memory_mb: Annotated[int, Field(ge=16, le=1_048_576)] | None = None
    cpus: Annotated[float, Field(gt=0, le=1024, allow_inf_nan=False)] | None = None
    pids: Annotated[int, Field(ge=8, le=1_048_576)] | None = None
    strict: bool = False
    ttl: Annotated[Seconds, Field(le=KEEP_LIMIT)] | None = None

    def spec(self) -> Spec:
        """The same, in the drivers' words."""
        return Spec(**self.model_dump(exclude_none=True))


class SandboxRequest(Model):
    """An existing sandbox by ``id``, or one to be made from ``spec``; exactly one of them."""

    provider: ProviderName
    id: SandboxId | None = None
    spec: SpecRequest | None = None

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        exactly_one(self.id is not None, self.spec is not None)
        return self


class ExistingSandbox(Model):
    """A sandbox that was made for this run."""

    provider: ProviderName
    id: SandboxId

    def wanted(self) -> SandboxRequest:
        """The same, as jobs name it."""
        return SandboxRequest(provider=self.provider, id=self.id)


class After(Model):
    """What becomes of the sandbox: kept for at least ``keep`` seconds, or released."""

    keep: Annotated[Seconds, Field(le=KEEP_LIMIT)] | None = None
    release: Literal[True] | None = None

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        exactly_one(self.keep is not None, self.release is not None)
        return self


def _integer(value: object) -> object:
    """``True`` and ``1.0`` equal 1 in Python; they are not the number 1 in JSON."""
    if type(value) is not int:
        raise reject(Reason.WRONG_TYPE)
    return value


Schema = Annotated[Literal[1], BeforeValidator(_integer)]
"""The version of a request."""


def reject(reason: Reason) -> PydanticCustomError:
    """What a validator raises to refuse its field for a reason of ours."""
    return PydanticCustomError(reason.value, "refused")


def exactly_one(*given: bool) -> None:
    """Refuse the model (``conflict``) unless exactly one is given."""
    if sum(given) != 1:
        raise reject(Reason.CONFLICT)


M = TypeVar("M", bound=BaseModel)


def validated(model: type[M], payload: object) -> M:
    """The request as a model.

    :raises InvalidRequest: names our field (joined by ``_``; ``request`` for the whole) and a :class:`Reason`.
    """
    if not isinstance(payload, Mapping):
        raise InvalidRequest("request", Reason.WRONG_TYPE.value)
    try:
        return model.model_validate(payload)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    raise InvalidRequest(_field(model, first), _reason(first["type"]).value)


def _field(model: type[BaseModel], error: ErrorDetails) -> str:
    """The path of our names; what the sender made up (unknown fields, keys of a mapping) is left out."""
    names: list[str] = []
    models = [model]
    for part in error["loc"]:
        info = next((found for each in models if (found := _declared(each, part))), None)
        if info is not None:
            names.append(str(part))
            models = _models_in(info.annotation)
    return "_".join(names) or "request"


def _declared(model: type[BaseModel], part: str | int) -> FieldInfo | None:
    """The field that senders call ``part``."""
    return next((info for name, info in model.model_fields.items() if part == (info.alias or name)), None)


def _reason(kind: str) -> Reason:
    """Pydantic's error types in our words."""
    if kind in set(Reason):
        return Reason(kind)
    match kind:
        case "missing" | "union_tag_not_found":
            return Reason.MISSING
        case "extra_forbidden":
            return Reason.UNKNOWN_FIELD
        case _ if kind.endswith("_type"):
            return Reason.WRONG_TYPE
        case _:
            return Reason.BAD_VALUE


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in getattr(annotation, "__args__", ()) for found in _models_in(part)]
