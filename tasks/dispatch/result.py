"""What a client is told of a tool that has run: its end and its output, as JSON, text or an artifact."""

import codecs
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tasks.dispatch.launcher import ReceiptOf
from worker.secrets.literals import Literals, forms
from worker.secrets.streams import LiteralStage
from worker.stores.artifacts import ArtifactStore

Outcome = Literal["succeeded", "failed", "killed", "timed_out", "cancelled"]
_TOO_DEEP = 200
"""Levels of a JSON output; what reads the result after us must not fall over it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Exactly one of ``value`` and ``artifact`` (``store/sha256:digest``).

    ``reason`` says what is wrong with the output, if anything is.
    """

    value: Any = None
    artifact: str | None = None
    reason: str | None = None


def outcome_of(receipt: ReceiptOf) -> Outcome:
    """How the tool ended, in one word. Only exit code 0, by itself, is a success."""
    if receipt.ended != "itself":
        return "timed_out" if receipt.ended == "timeout" else "cancelled"
    if receipt.signal is not None:
        return "killed"
    return "succeeded" if receipt.exit_code == 0 else "failed"


def reason_of(receipt: ReceiptOf) -> str | None:
    """What is known about an end that was not the tool's own choice."""
    return "out_of_memory" if receipt.out_of_memory else None


def output_of(
    receipt: ReceiptOf,
    form: Literal["json", "text"],
    secrets: Sequence[str],
    *,
    inline: int,
    store: Callable[[], ArtifactStore],
) -> Output:
    """The output, with the call's own secrets masked; above ``inline`` bytes it goes to ``store``.

    An output that should be JSON and is not is text, and ``output_malformed`` if the tool claims success.
    """
    hide = masker(secrets)
    text = hide(decoded(receipt.stdout, cut=receipt.truncated))
    if len(text.encode(errors="replace")) > inline:
        return Output(artifact=_stored(text, form, store()))
    if form == "text":
        return Output(value=text)
    try:
        return Output(value=_each_text(_json(text), hide))
    except (ValueError, RecursionError):
        return Output(value=text, reason="output_malformed" if outcome_of(receipt) == "succeeded" else None)


def decoded(data: bytes, *, cut: bool) -> str:
    """UTF-8, read as a whole; bytes that are none are replaced, a letter that was cut in two is left out."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data, final=not cut)


def masker(secrets: Sequence[str]) -> Callable[[str], str]:
    """A function that masks the secrets of this call in a text, in every form they are usually written in.

    What merely looks like a secret stays: this is the tool's product, not a log.
    """
    if not secrets:
        return lambda text: text
    literals = Literals(form for secret in secrets for form in forms(secret))

    def hide(text: str) -> str:
        stage = LiteralStage(literals)
        return stage.feed(text) + stage.flush()

    return hide


def _each_text(value: Any, hide: Callable[[str], str]) -> Any:
    """Hide in every text of a JSON value: JSON can spell any letter in a dozen ways, the value has only one."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, list):
        return [_each_text(item, hide) for item in value]
    if isinstance(value, dict):
        return {hide(key): _each_text(item, hide) for key, item in value.items()}
    return value


def _json(text: str) -> Any:
    """A value that every reader of JSON reads alike.

    :raises ValueError: there is none, a key comes twice, a number is out of range, a letter is half a pair.
    """
    value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once)
    _check_depth(value, _TOO_DEEP)
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _check_depth(value: Any, left: int) -> None:
    if left == 0:
        raise ValueError("too deep")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_depth(inner, left - 1)


def _no_constant(_: str) -> None:
    raise ValueError("no JSON number")


def _stored(text: str, form: str, store: ArtifactStore) -> str:
    with tempfile.TemporaryDirectory(prefix="sandferry-") as directory:
        path = Path(directory, "output")
        path.write_text(text, encoding="utf-8", errors="replace", newline="")
        return str(store.put({"output": path}, {"kind": "tool_output", "schema": 1, "form": form}))
