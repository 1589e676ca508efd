"""The launcher: what it is asked, and what its answer says. It comes out of a sandbox, so only what fits counts."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Literal

from worker.sandboxes.exits import decode_exit

_PARTS = ("prelude.sh", "files.sh", "processes.sh", "supervise.sh", "main.sh")
STDERR_LIMIT = 64 * 1024
"""Bytes of a tool's standard error that are kept."""
ANSWER_LIMIT = 4096
"""Bytes of an answer without the tool's output."""

Ended = Literal["itself", "timeout", "cancelled"]
State = Literal["receipt", "running", "void", "dead", "nothing", "foreign"]
"""``void``: proven never to have run. ``nothing``: no trace. ``foreign``: claimed by somebody else."""

REFUSALS = frozenset({"program_missing", "archive_invalid", "digest_mismatch", "disk_full", "file_denied"})
"""Why the launcher itself refuses; nothing of the tool has run then."""

_RECEIPT = re.compile(
    r"(?P<code>[0-9]{1,3}):(?P<ended>itself|timeout|cancelled):(?P<hint>none|out_of_memory)"
    r":(?P<out>[0-9]{1,9}):(?P<out_more>yes|no):(?P<err>[0-9]{1,9}):(?P<err_more>yes|no)"
)
_GENERATION = re.compile(r"[1-9][0-9]{0,5}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptOf:
    """How a tool ended. ``truncated``: there was more on its standard output than was kept."""

    exit_code: int | None
    signal: str | None
    ended: Ended
    out_of_memory: bool
    truncated: bool
    stdout: bytes = field(repr=False)
    stderr: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the launcher says. Exactly one of ``state``, ``refused``, ``need_package``, ``done`` speaks."""

    state: State | None = None
    receipt: ReceiptOf | None = None
    refused: str | None = None
    need_package: bool = False
    done: bool = False


@cache
def script() -> str:
    """The launcher's text: one fixed text, so that one command does all the work."""
    folder = files(__package__) / "sh"
    return "".join(folder.joinpath(part).read_text() for part in _PARTS)


def command(mode: str, place: str, nonce: str, generation: int, *arguments: str) -> list[str]:
    """An argument vector, in the order in which ``prelude.sh`` takes it. No input, no secret is in it."""
    text = script()
    return ["sh", "-c", text, "sandferry-launcher", mode, text, place, nonce, str(generation), *arguments]


def place(scratch: str, run_id: str, dispatch_id: str) -> str:
    """Where a call lies in a sandbox."""
    key = hashlib.sha256(f"{run_id}\0{dispatch_id}".encode()).hexdigest()[:32]
    return f"{scratch}/dispatch/{key}"


def entry(entrypoint: Sequence[str], package: str) -> list[str]:
    """The tool's argument vector; ``./`` begins a file of the package."""
    return [f"{package}/files/{item[2:]}" if item.startswith("./") else item for item in entrypoint]


def read_answer(stdout: bytes) -> Answer | None:
    """Read an answer; ``None`` for what is none, a cut one too."""
    head, blank, body = stdout.partition(b"\n\n")
    if not blank and not head.endswith(b"\n"):
        return None  # cut within a line
    said = dict(_pair(line) for line in head.decode("ascii", "replace").splitlines())
    match said:
        case {"refused": reason, **others} if not others:
            return Answer(refused=reason) if reason in REFUSALS else None
        case {"need": "package", **others} if not others:
            return Answer(need_package=True)
        case {"staged": "yes", **others} | {"unpacked": "yes", **others} if not others:
            return Answer(done=True)
        case {"state": "receipt", "receipt": text, "generation": generation}:
            receipt = _receipt(text, body) if _GENERATION.fullmatch(generation) else None
            return Answer(state="receipt", receipt=receipt) if receipt else None
        case {"state": "running" | "void" | "dead" | "nothing" | "foreign" as state, "generation": generation}:
            return Answer(state=state) if _GENERATION.fullmatch(generation) else None
    return None


def _pair(line: str) -> tuple[str, str]:
    key, _, value = line.partition(" ")
    return key, value


def _receipt(text: str, body: bytes) -> ReceiptOf | None:
    found = _RECEIPT.fullmatch(text)
    if found is None:
        return None
    code, out, err = int(found["code"]), int(found["out"]), int(found["err"])
    if len(body) != out + err or code > 255:
        return None
    exit_code, signal = decode_exit(code)
    return ReceiptOf(
        exit_code=exit_code,
        signal=signal,
        ended=found["ended"],  # type: ignore[arg-type]  # the pattern allows these words only
        out_of_memory=found["hint"] == "out_of_memory",
        truncated=found["out_more"] == "yes",
        stdout=body[:out],
        stderr=body[out:],
    )
