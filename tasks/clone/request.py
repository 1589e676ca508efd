"""The request of ``sandbox.clone``."""

from collections.abc import Collection
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator
from pydantic_core import PydanticCustomError

from tasks.clone.refs import valid_name
from tasks.clone.repository import Repository, parse_url
from worker.failures.model import InvalidRequest
from worker.retrying.requests import After, Deadline, Model, Reason, RunId, SandboxRequest, Schema, reject, validated

DEPTH_MAX = 2_147_483_646
"""One more means "all" to git."""


class RepositoryRequest(Model):
    """Where to clone from."""

    url: Annotated[str, Field(repr=False)]


class RefRequest(Model):
    """What to check out: a branch, a tag or an exact commit; none of them is the remote's HEAD."""

    branch: str | None = None
    tag: str | None = None
    commit: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")] | None = None

    @field_validator("branch", "tag")
    @classmethod
    def _name(cls, value: str | None) -> str | None:
        if value is not None and not valid_name(value):
            raise reject(Reason.BAD_VALUE)
        return value

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if sum(value is not None for value in (self.branch, self.tag, self.commit)) > 1:
            raise reject(Reason.CONFLICT)
        return self


class NoCredential(Model):
    """A public repository."""

    kind: Literal["none"]


class SealedCredential(Model):
    """A token, sealed to the worker's public key."""

    kind: Literal["sealed"]
    box: Annotated[str, StringConstraints(pattern=r"^[!-~]+$", max_length=65_536), Field(repr=False)]


class AppCredential(Model):
    """The worker mints a GitHub App installation token; without an id it looks the installation up."""

    kind: Literal["github_app"]
    installation_id: Annotated[int, Field(gt=0)] | None = None


CredentialRequest = Annotated[NoCredential | SealedCredential | AppCredential, Field(discriminator="kind")]


class CloneRequest(Model):
    """One clone. Times are seconds; ``single_branch`` left out means: as git does, yes with a depth."""

    schema_: Schema = Field(alias="schema")
    run_id: RunId
    sandbox: SandboxRequest
    repository: RepositoryRequest
    ref: RefRequest = RefRequest()
    depth: Annotated[int, Field(ge=1, le=DEPTH_MAX)] | None = None
    single_branch: bool | None = None
    submodules: bool = False
    lfs: bool = False
    filter: (
        Annotated[str, StringConstraints(pattern=r"^(blob:none|blob:limit=[0-9]{1,12}[kmg]?|tree:[0-9]{1,3})$")] | None
    ) = None
    credential: CredentialRequest = NoCredential(kind="none")
    after: After | None = None
    deadline: Deadline | None = None

    @property
    def fetches_one_branch(self) -> bool:
        """Whether only the wanted branch is fetched."""
        return self.depth is not None if self.single_branch is None else self.single_branch


def parse(payload: object) -> CloneRequest:
    """The request of a message.

    :raises InvalidRequest: names our field and a :class:`~worker.retrying.requests.Reason`.
    """
    request = validated(CloneRequest, payload)
    if request.filter is not None and request.credential.kind != "none":
        raise InvalidRequest("filter", Reason.FILTER_WITH_CREDENTIAL.value)
    return request


def repository_of(request: CloneRequest, *, http_hosts: Collection[str] = ()) -> Repository:
    """The repository a request names; ``http_hosts`` as in :func:`~tasks.clone.repository.parse_url`.

    :raises InvalidRequest: ``repository_url`` and a :class:`~worker.retrying.requests.Reason`.
    """
    try:
        return parse_url(request.repository.url, http_hosts=http_hosts)
    except PydanticCustomError as error:
        reason = error.type
    raise InvalidRequest("repository_url", reason)
