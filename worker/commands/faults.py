"""What a command says when the installation is at fault: one line, with advice, without values."""

from kombu.exceptions import OperationalError
from pydantic import ValidationError

from worker.failures.model import InvalidRequest
from worker.secrets.keyring import KeyRingError
from worker.stores.redis import StoreError


def explain(exc: Exception) -> str:
    """Say what is wrong and what to do about it."""
    match exc:
        case ValidationError():
            names = ", ".join(sorted({_variable(error["loc"]) or error["msg"] for error in exc.errors()}))
            return f"sandferry: not valid: {names}. Settings are explained in docs/settings.md."
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


def _variable(loc: tuple[int | str, ...]) -> str:
    """The environment variable of a setting."""
    return f"SANDFERRY_{str(loc[0]).upper()}" if loc else ""
