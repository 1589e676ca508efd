"""What is done in a sandbox, one method a step. Over any driver: only ``run`` and ``write`` are used."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from tasks.dispatch import launcher
from tasks.dispatch.call import ToolCall
from tasks.dispatch.launcher import ANSWER_LIMIT, STDERR_LIMIT, Answer
from worker.failures.model import Cancelled, Category, EndedBy, Failure, OperationFailed
from worker.sandboxes.base import Completed, Sandbox
from worker.sandboxes.deadline import Deadline
from worker.stores.ledger import Entry

INLINE_INPUT = 64 * 1024
"""Bytes of an input that ride in the environment: Linux holds 128 KiB a string; larger ones are uploaded."""
STEP = 120.0
"""Seconds for a step other than the tool itself; a package of 32 MiB is unpacked in a few."""
LOOK = 30.0
ENDING = 20.0
"""Seconds of a call's time that its tool does not get: to end it (half a second of grace, five to see it gone), and to
hear of it."""
ANY_NONCE = "-"
"""Look for a claim of anybody: the ledger does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The steps of one call in one sandbox."""

    call: ToolCall
    sandbox: Sandbox
    deadline: Deadline
    package: str = field(init=False)
    """Where the package lies, or will."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "package", f"{self.sandbox.layout.scratch}/tools/{self.call.reference.digest}")

    def upload(self, archive: bytes, nonce: str) -> None:
        """Put the package into the sandbox; one that is there and whole is left alone."""
        deadline = self.deadline.capped(STEP)
        path = f"{self.sandbox.layout.scratch}/tool-{nonce}.tar"
        self.sandbox.write(path, archive, deadline=deadline)
        argv = launcher.command("unpack", self._place, nonce, 1, self.package, self._sums, path)
        done = self.sandbox.run(argv, deadline=deadline, stdin=self.call.descriptor.sums.encode())
        _require(self._answered(done, ANSWER_LIMIT))

    def stage(self, entry: Entry) -> bool:
        """Put the input beside the claim that is to come. False: the package is not there."""
        answer = self._ask("stage", entry, staged=False)
        return not _require(answer).need_package

    def send(self, entry: Entry, *, staged: bool) -> Answer:
        """Start the tool, once, and wait for its receipt. Needs the package, else the answer says so."""
        return _require(self._ask("run", entry, staged=staged))

    def look(self, entry: Entry, nonce: str | None = None) -> Answer:
        """What became of the call. An input that was staged and never claimed is closed by this look."""
        return self._inquire("look", entry, self.deadline.capped(LOOK), nonce or entry.nonce)

    def follow(self, entry: Entry, nonce: str | None = None) -> Answer:
        """Wait for the receipt of a tool that runs."""
        return self._inquire("follow", entry, self.deadline, nonce or entry.nonce)

    @property
    def seconds(self) -> int:
        """Seconds that a tool gets now: its timeout, or what is left, so that it never outlives its call's time."""
        return min(self.call.timeout, int(self.deadline.remaining() - ENDING))

    @property
    def _place(self) -> str:
        return launcher.place(self.sandbox.layout.scratch, self.call.ledger.run_id, self.call.dispatch_id)

    @property
    def _sums(self) -> str:
        return hashlib.sha256(self.call.descriptor.sums.encode()).hexdigest()

    def _ask(self, mode: str, entry: Entry, *, staged: bool) -> Answer:
        manifest = self.call.manifest
        argv = launcher.command(
            mode, self._place, entry.nonce, entry.generation,
            self.package, self._sums, _word(not self._reads), _word(staged), self.sandbox.layout.workspace,
            str(self.seconds), str(manifest.output_limit), str(STDERR_LIMIT),
            *launcher.entry(manifest.entrypoint, self.package),
        )  # fmt: skip
        limit = manifest.output_limit + STDERR_LIMIT + ANSWER_LIMIT
        inline = len(self.call.input) <= INLINE_INPUT
        env = dict(self._environment()) if mode == "run" else {}
        if not staged and inline:
            env["SANDFERRY_INPUT"] = self.call.input.decode()
        stdin = self.call.input if not staged and not inline else None
        deadline = self.deadline if mode == "run" else self.deadline.capped(STEP)
        done = self.sandbox.run(argv, env=env, stdin=stdin, deadline=deadline, output_limit=limit)
        return self._answered(done, limit)

    def _environment(self) -> Mapping[str, str]:
        path = {"SANDFERRY_PATH": self.call.env["PATH"]} if "PATH" in self.call.env else {}
        return {
            **{name: value for name, value in self.call.env.items() if name != "PATH"},
            **path,
            "SANDFERRY_DISPATCH_ID": self.call.dispatch_id,
            "SANDFERRY_RUN_ID": self.call.ledger.run_id,
            "SANDFERRY_TOOL_DIR": f"{self.package}/files",
            "SANDFERRY_WORKSPACE": self.sandbox.layout.workspace,
        }

    @property
    def _reads(self) -> bool:
        return self.call.effect.value == "read"

    def _inquire(self, mode: str, entry: Entry, deadline: Deadline, nonce: str) -> Answer:
        limit = self.call.manifest.output_limit + STDERR_LIMIT + ANSWER_LIMIT
        argv = launcher.command(mode, self._place, nonce, entry.generation)
        return self._answered(self.sandbox.run(argv, deadline=deadline, output_limit=limit), limit)

    def _answered(self, done: Completed, limit: int) -> Answer:
        """The launcher's answer; a command that was ended, or that says nothing, gave none.

        :raises Cancelled: the run was cancelled.
        :raises OperationFailed: there is no whole answer (``reply_lost``), or the time is over.
        """
        if done.ended_by is EndedBy.CANCELLED:
            raise Cancelled
        answer = launcher.read_answer(done.stdout) if done.ok and len(done.stdout) <= limit else None
        if answer is not None:
            return answer
        late = done.ended_by is EndedBy.DEADLINE
        raise OperationFailed(
            Failure(
                operation="dispatch",
                stage="launch",
                provider=self.sandbox.provider,
                program="launcher",
                exit_code=done.exit_code,
                signal=done.signal,
                ended_by=done.ended_by,
                category=None if late else Category.TRANSIENT_NETWORK,
                reason="deadline" if late else "reply_lost",
                text=done.stderr.decode(errors="replace"),
            )
        )


def _require(answer: Answer) -> Answer:
    """Turn a refusal of the launcher into a failure: what it refuses for does not pass by itself."""
    if answer.refused is None:
        return answer
    category = {
        "disk_full": Category.RESOURCE_EXHAUSTED,
        "program_missing": Category.INVALID_REQUEST,
        "file_denied": Category.POLICY_DENIED,
    }.get(answer.refused, Category.CORRUPT_DATA)
    raise OperationFailed(
        Failure(operation="dispatch", stage="launch", program="launcher", category=category, reason=answer.refused)
    )


def _word(value: bool) -> str:  # noqa: FBT001 - it is what is translated
    return "yes" if value else "no"
