"""A command in a hosted sandbox: started at most once, asked about until it answers, or ended."""

import base64
import hashlib
import io
import math
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from worker.failures.model import Cancelled, Category, EndedBy, OperationFailed
from worker.sandboxes.base import MEBIBYTE, Completed
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.exits import decode_exit
from worker.sandboxes.hosted import answer, scripts
from worker.sandboxes.hosted.faults import failure
from worker.sandboxes.hosted.hands import Hands

GRACE = 0.5
"""Seconds between TERM and KILL."""
CONFIRM = 5.0
"""Seconds a killed group may take to be gone."""
_SLACK = 5
"""Seconds the launcher waits longer than we do, so that we are the ones who end a command."""
_PATIENCE = GRACE + CONFIRM + 10.0
"""Seconds to end a command: an end that is not confirmed by then is ambiguous."""
_ENDED_OUTPUT = MEBIBYTE
"""Bytes of each stream that are fetched of a command we had to end."""
_NAPS = [str(round(seconds * 20)) for seconds in (GRACE, CONFIRM)]
"""The same in the launcher's unit."""
_ENDINGS = {"output_limit": EndedBy.OUTPUT_LIMIT, "watchdog": EndedBy.DEADLINE}


@dataclass(frozen=True, slots=True)
class Job:
    """What to run, and the directory of ours in which it is written down."""

    directory: str
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    stdin: bytes | None
    output_limit: int


def nonce_of(tag: str) -> str:
    """A new nonce for a command of ``tag``; a tag is anything, so its digest stands for it."""
    return _digest(tag) + secrets.token_hex(8)


def end_all(hands: Hands, directory: str, tag: str, deadline: Deadline) -> None:
    """End every command of ``tag`` with its process group, and see them gone.

    :raises OperationFailed: nobody could confirm it (``timeout_ambiguous``).
    """
    args = ("end_all", directory, _digest(tag), *_NAPS)
    code, _ = hands.script(scripts.LAUNCHER, *args, deadline=deadline, stage="run")
    if code:
        raise failure(hands.cloud.name, "run", Category.TIMEOUT_AMBIGUOUS, "timeout_ambiguous")


def _digest(tag: str) -> str:
    return hashlib.sha256(tag.encode()).hexdigest()[:16]


class Command:
    """One command. ``answered`` is the nonce of the last one whose answer arrived; its files are removed."""

    def __init__(self, hands: Hands, job: Job, nonce: str, deadline: Deadline) -> None:
        self.nonce = nonce
        self._hands = hands
        self._job = job
        self._deadline = deadline

    def run(self, answered: str | None) -> Completed:
        """Run it to its end, or end it.

        :raises OperationFailed: its end could not be confirmed (``timeout_ambiguous``), or the launcher made no sense.
        """
        try:
            env = self._payload()
            seconds = str(math.ceil(self._deadline.remaining()) + _SLACK)
            limit = str(self._job.output_limit)
            args = (seconds, *_NAPS, limit, self._job.cwd, answered or "-")
            return self._completed(self._ask("start", *args, env=env, deadline=self._deadline), None)
        except (Cancelled, OperationFailed) as exc:
            if isinstance(exc, OperationFailed) and exc.failure.category is Category.SANDBOX_LOST:
                raise
            if (by := self._deadline.ended_by()) is None:
                self._end_quietly()
                raise
            return self._completed(self._end(), by)
        except BaseException:
            self._end_quietly()
            raise

    def _payload(self) -> dict[str, str]:
        """What travels beside the command; what is too large for that is uploaded first."""
        text = scripts.job(self._job.argv, self._job.env)
        env: dict[str, str] = {}
        if len(text.encode()) <= scripts.TEXT:
            env["SANDFERRY_JOB"] = text
        else:
            self._upload("job", text.encode())
        if self._job.stdin and len(self._job.stdin) <= scripts.INLINE:
            env["SANDFERRY_STDIN"] = base64.b64encode(self._job.stdin).decode()
        elif self._job.stdin:
            self._upload("in", self._job.stdin)
        return env

    def _upload(self, suffix: str, data: bytes) -> None:
        path = f"{self._job.directory}/up/{self.nonce}.{suffix}"
        self._hands.upload(path, io.BytesIO(data), deadline=self._deadline, stage="run")

    def _ask(self, mode: str, *args: str, deadline: Deadline, env: Mapping[str, str] | None = None) -> answer.Answer:
        full = (mode, self._job.directory, self.nonce, *args)
        _, text = self._hands.script(scripts.LAUNCHER, *full, env=env, deadline=deadline, stage="run")
        answered = answer.parse(text, self.nonce)
        if answered is None:
            self._hands.raise_if_lost(deadline, "run")  # the launcher may have died with it
            raise failure(self._hands.cloud.name, "run", Category.CORRUPT_DATA, "malformed_answer", text)
        if answered.how == "refused":
            raise self._refused(answered.out.decode(errors="replace"))
        return answered

    def _refused(self, why: str) -> OperationFailed:
        """The launcher could not make its directory: a full disk says so; else somebody took our scratch away."""
        name = self._hands.cloud.name
        if any(words in why for words in ("Not a directory", "No such file", "File exists")):
            return failure(name, "run", Category.INVALID_REQUEST, "layout_invalid", why)
        return failure(name, "run", None, None, why)

    def _end(self) -> answer.Answer:
        """End the process group in the sandbox and see it gone."""
        try:
            answered = self._ask("end", *_NAPS, deadline=Deadline.after(_PATIENCE))
        except OperationFailed as exc:
            if exc.failure.category is Category.SANDBOX_LOST:
                raise
            raise self._ambiguous() from exc
        except Exception as exc:
            raise self._ambiguous() from exc
        if answered.how == "unconfirmed":
            raise self._ambiguous()
        return answered

    def _end_quietly(self) -> None:
        with suppress(Exception):  # the exception on its way tells more; the watchdog inside remains
            self._end()

    def _ambiguous(self) -> OperationFailed:
        return failure(self._hands.cloud.name, "run", Category.TIMEOUT_AMBIGUOUS, "timeout_ambiguous")

    def _completed(self, answered: answer.Answer, ended: EndedBy | None) -> Completed:
        limit = self._job.output_limit
        by = _ENDINGS.get(answered.how)
        if by is None and max(answered.out_size, answered.err_size) > limit:
            by = EndedBy.OUTPUT_LIMIT
        if answered.how == "ended":
            by = ended or EndedBy.UNKNOWN
        # Whoever ends a command at its deadline is not kept waiting for a flood of output.
        deadline, most = (self._deadline, limit) if ended is None else (Deadline.after(_PATIENCE), _ENDED_OUTPUT)
        stdout = self._stream("out", answered.out, min(answered.out_size, limit, most), deadline)
        stderr = self._stream("err", answered.err, min(answered.err_size, limit, most), deadline)
        if by is None and answered.code is not None:
            code, signal = decode_exit(answered.code)
            by = EndedBy.UNKNOWN if signal else EndedBy.ITSELF
            if signal == "SIGKILL":
                self._hands.raise_if_lost(deadline, "run")
            return Completed(exit_code=code, signal=signal, ended_by=by, stdout=stdout, stderr=stderr)
        by = by or EndedBy.UNKNOWN
        return Completed(exit_code=None, signal=answered.sent, ended_by=by, stdout=stdout, stderr=stderr)

    def _stream(self, name: str, data: bytes, limit: int, deadline: Deadline) -> bytes:
        """The first ``limit`` bytes of a stream: as they came with the answer, else out of its file."""
        if len(data) >= limit:
            return data[:limit]
        whole = bytearray()
        path = f"{self._job.directory}/run/{self.nonce}/{name}"
        chunks = self._hands.download(path, deadline=deadline, stage="run")
        for chunk in chunks:
            whole += chunk
            if len(whole) >= limit:
                break
        chunks.close()
        return bytes(memoryview(whole)[:limit])
