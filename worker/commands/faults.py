"""What a command says when the installation is at fault: one line, with advice, without values."""

from kombu.exceptions import OperationalError
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from worker.failures.model import InvalidRequest
from worker.secrets.keyring import KeyRingError
from worker.stores.redis import StoreError


def explain(exc: Exception) -> str:
    """Say what is wrong and what to do about it."""
    match exc:
        case ValidationError():
            wrong = "; ".join(sorted({_wrong(exc.title, error) for error in exc.errors(include_input=False)}))
            return f"sandferry: not valid: {wrong}. Settings are explained in docs/settings.md."
        case InvalidRequest():
            return f"sandferry: {exc.field_name}: {exc.reason.replace('_', ' ')}"
        case KeyRingError():
            return f"sandferry: key ring: {exc}"
        case OperationalError():
            return "sandferry: the broker does not answer. Is it up? Try `sandferry doctor`."
        case StoreError():
            return "sandferry: the record store does not answer. Is Redis up? Try `sandferry doctor`."
        case OSError():
            return f"sandferry: {exc.strerror or type(exc).__name__}: {exc.filename or ''}".rstrip(": ")
    return f"sandferry: {type(exc).__name__}"


def _wrong(model: str, error: ErrorDetails) -> str:
    """Name the field, as a variable when it is a setting, and what it must be; pydantic's words hold no value."""
    said = error["msg"].removeprefix("Value error, ")
    if not error["loc"]:
        return said
    field = str(error["loc"][0])
    return f"SANDFERRY_{field.upper()}: {said}" if model == "Settings" else f"{field}: {said}"
