"""The manifest of a tool: what it is called with, what it may use, and what it does to the world."""

import json
import re
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from worker.failures.model import InvalidRequest
from worker.tools.bounded import within

MANIFEST = "manifest.json"
"""The file of a package's directory that holds it."""
MANIFEST_MAX = 256 * 1024
"""Bytes; an input schema of thousands of properties fits."""
OUTPUT_MAX = 64 * 1024 * 1024
"""Bytes that any tool may declare as its output limit."""
TIMEOUT_LIMIT = 86_400
"""Seconds that any tool may declare; settings allow less (``SANDFERRY_TOOL_TIMEOUT_MAX``)."""
CHECK_TIME = 20.0
"""Seconds to check a call's arguments: a million numbers take 10, and a lease (30 s) lasts longer."""
PACKAGE_ITEM = "./"
"""An item of the entrypoint that begins so is a file of the package."""

NAME = r"[a-z0-9][a-z0-9._-]{0,63}"
_PATH = re.compile(r"(?:[A-Za-z0-9_.+@=,-]{1,100}/){0,15}[A-Za-z0-9_.+@=,-]{1,100}")
_PATH_MAX = 200
"""Characters; every tar can carry it (ustar holds 255)."""

Name = Annotated[str, StringConstraints(pattern=rf"^{NAME}$")]
EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]


class Effect(StrEnum):
    """What a call of the tool does to the world. Only a read may ever be sent twice."""

    READ = "read"
    WRITE = "write"
    MIXED = "mixed"
    UNDECLARED = "undeclared"
    """The manifest does not say; never written in one."""


class Manifest(BaseModel):
    """``manifest.json``. ``timeout`` is seconds, ``output_limit`` bytes of standard output that are kept.

    An item of ``entrypoint`` that begins with ``./`` is a file of the package. ``env`` lists the variables that a
    call may set. ``provider`` and ``template`` (an image) say where the tool runs; absent means anywhere.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    schema_: Literal[1] = Field(alias="schema")
    name: Name
    version: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+_-]{0,63}$")]
    description: Annotated[str, StringConstraints(max_length=4096)] = ""
    entrypoint: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]*$")]],
        Field(min_length=1, max_length=64),
    ]
    input_schema: dict[str, Any]
    output: Literal["json", "text"] = "json"
    output_limit: Annotated[int, Field(ge=1, le=OUTPUT_MAX)] = 1024 * 1024
    timeout: Annotated[int, Field(ge=1, le=TIMEOUT_LIMIT)]
    provider: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,31}$")] | None = None
    template: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$")] | None = None
    env: Annotated[list[EnvName], Field(max_length=64)] = []
    effect: Literal["read", "write", "mixed"] | None = None

    @model_validator(mode="after")
    def _files_of_the_package(self) -> Self:
        if not all(valid_path(item[2:]) for item in self.entrypoint if item.startswith(PACKAGE_ITEM)):
            raise PydanticCustomError("unsafe_path", "refused")
        return self

    @field_validator("env")
    @classmethod
    def _not_ours(cls, names: list[str]) -> list[str]:
        if any(name.startswith("SANDFERRY_") for name in names):
            raise PydanticCustomError("bad_value", "refused")
        return names

    @property
    def declared(self) -> Effect:
        """The effect; a manifest that does not say is ``undeclared``."""
        return Effect(self.effect or Effect.UNDECLARED)

    def files(self) -> list[str]:
        """The files of the package that the entrypoint names."""
        return [item[2:] for item in self.entrypoint if item.startswith(PACKAGE_ITEM)]


def valid_path(path: str) -> bool:
    """Whether ``path`` is a relative path that any tar, shell and checksum list can carry, inside its directory."""
    parts = path.split("/")
    return len(path) <= _PATH_MAX and _PATH.fullmatch(path) is not None and not {".", ".."} & set(parts)


def read_json(text: bytes, field: str) -> Any:
    """JSON as RFC 8259 has it: no key twice, no ``NaN``. Raises InvalidRequest (``malformed``)."""
    try:
        return json.loads(text.decode(), object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        pass
    raise InvalidRequest(field, "malformed")


def parse_manifest(value: Any) -> Manifest:
    """The manifest.

    :raises InvalidRequest: ``manifest`` or ``manifest_<field>``, and why.
    """
    try:
        manifest = Manifest.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    else:
        check_schema(manifest.input_schema)
        return manifest
    known = {info.alias or name for name, info in Manifest.model_fields.items()}
    place = str(first["loc"][0]) if first["loc"] else ""
    raise InvalidRequest(f"manifest_{place}" if place in known else "manifest", _reason(first["type"]))


def check_schema(schema: dict[str, Any]) -> None:
    """Refuse a schema that is none (JSON Schema 2020-12), or that points outside itself.

    :raises InvalidRequest: ``manifest_input_schema`` with ``schema`` or ``outside_reference``.
    """
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415 - worker memory is budgeted

    try:
        Draft202012Validator.check_schema(schema)
        valid = True
    except (SchemaError, RecursionError):
        valid = False
    if not valid:
        raise InvalidRequest("manifest_input_schema", "schema")
    if not all(reference.startswith("#") for reference in _references(schema)):
        raise InvalidRequest("manifest_input_schema", "outside_reference")


def check_arguments(schema: dict[str, Any], arguments: Any) -> None:
    """Check a call's arguments; says nothing of their values.

    :raises InvalidRequest: ``arguments``: ``schema``, or ``too_large`` if it takes more than :data:`CHECK_TIME`: an
        expression that backtracks, or many items that must differ, would keep the worker, its signs of life and all.
    """
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - worker memory is budgeted
    from referencing import Registry  # noqa: PLC0415 - same
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - same

    registry: Registry[Any] = Registry()  # empty: jsonschema's own would fetch a reference from the network
    try:
        with within(CHECK_TIME):
            reason = None if Draft202012Validator(schema, registry=registry).is_valid(arguments) else "schema"
    except (Unresolvable, RecursionError):
        reason = "schema"
    except TimeoutError:
        reason = "too_large"
    if reason is not None:
        raise InvalidRequest("arguments", reason)


def _references(value: Any) -> list[str]:
    """Every ``$ref`` and ``$dynamicRef`` in a schema, wherever it stands."""
    if isinstance(value, list):
        return [found for item in value for found in _references(item)]
    if not isinstance(value, dict):
        return []
    own = [value[key] for key in ("$ref", "$dynamicRef") if isinstance(value.get(key), str)]
    return own + [found for item in value.values() for found in _references(item)]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _no_constant(_: str) -> None:
    raise ValueError("no JSON number")


def _reason(kind: str) -> str:
    """Pydantic's error types in words of the vocabulary."""
    match kind:
        case "missing" | "unsafe_path":
            return kind
        case "extra_forbidden":
            return "unknown_field"
        case "greater_than_equal" | "less_than_equal":
            return "out_of_range"
        case _ if kind.endswith("_type"):
            return "wrong_type"
    return "bad_value"
