"""The request of `workspace.copy_back`."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from worker.retrying.requests import After, Deadline, ExistingSandbox, Model, RunId, Schema

Hex = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
"""A store or a host repository: a name that the operator's settings define, never a path or a URL."""
Glob = Annotated[str, StringConstraints(min_length=1, max_length=1024)]


class DeliverTo(Model):
    """A host repository, and a branch of it to move (left out: none moves, the run's own refs are made)."""

    repository: Name
    branch: Annotated[str, StringConstraints(min_length=1, max_length=255)] | None = None


class CopyBackRequest(Model):
    """One copy-back. ``path``, ``commit`` and ``baseline`` are the clone's result; sizes in bytes, times in seconds.

    ``include`` takes ignored files in, ``exclude`` leaves files as they were. ``on_loss`` says what becomes of a
    capture that git cannot carry whole: ``partial`` names the losses in the result, ``fail`` refuses it.
    """

    schema_: Schema = Field(alias="schema")
    run_id: RunId
    sandbox: ExistingSandbox
    path: Annotated[str, StringConstraints(pattern=r"^/[^\x00\n]{0,4095}$")]
    commit: Hex | None = None
    baseline: Hex | None = None
    origin: Annotated[str, StringConstraints(pattern=r"^https?://[^@\s\x00-\x1f]{1,1024}$")] | None = None
    depth: Annotated[int, Field(ge=1, le=2_147_483_646)] | None = None
    include: Annotated[tuple[Glob, ...], Field(max_length=64, strict=False)] = ()
    exclude: Annotated[tuple[Glob, ...], Field(max_length=64, strict=False)] = ()
    max_file: Annotated[int, Field(ge=1, le=2**40)] | None = None
    quiesce: Literal["none", "pause"] = "none"
    on_loss: Literal["partial", "fail"] = "partial"
    store: Name = "default"
    deliver: DeliverTo | None = None
    recovers: Annotated[str, StringConstraints(pattern=r"^op-[A-Za-z0-9_-]{1,64}$")] | None = None
    after: After | None = None
    deadline: Deadline | None = None
