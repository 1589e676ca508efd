"""Create, never blindly: look, make under a key, look again before every repetition, and reap what lost."""

import secrets
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar

from worker.failures.classify import classify
from worker.failures.model import Category, InvalidRequest, OperationFailed
from worker.sandboxes.base import Spec
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.hosted.cloud import About, Cloud, NameTakenError, State
from worker.sandboxes.hosted.faults import failure
from worker.sandboxes.hosted.loop import Loop
from worker.sandboxes.labels import digest, matches

T = TypeVar("T")

LOOK_AGAIN = 3.0
"""Seconds in which a create whose answer was lost may still appear in the provider's list."""
LOOK_EVERY = 0.25
"""Seconds between two looks."""
_REFUSED = (
    Category.AUTH_DENIED,
    Category.INVALID_REQUEST,
    Category.NOT_FOUND,
    Category.POLICY_DENIED,
    Category.RATE_LIMITED,
)
"""What a provider says before it makes anything."""
_NOT_SENT = ("connect_failed", "dns")


class StumbledError(Exception):
    """A call of the SDK raised ``exc``; nothing of the waiting thread's own is ever taken for that."""

    def __init__(self, exc: BaseException) -> None:
        super().__init__()
        self.exc = exc


class Creation:
    """One create: the same labels end at the same single sandbox."""

    def __init__(self, cloud: Cloud, loop: Loop, spec: Spec, labels: Mapping[str, str], deadline: Deadline) -> None:
        self._cloud = cloud
        self._loop = loop
        self._spec = spec
        self._labels = labels
        self._deadline = deadline
        self._key = digest(labels)

    def run(self) -> About:
        """A running sandbox with these labels, found or made.

        :raises OperationFailed: it did not get ready (``not_ready``).
        """
        try:
            return self._ready(self._settled() or self._made())
        except StumbledError as stumbled:
            raised = stumbled.exc
        raise raised

    def again(self) -> About:
        """Another one, when the first turned out to be dead: a key that was used stands for it for ever."""
        self._key = f"{digest(self._labels)}-{secrets.token_hex(4)}"
        return self.run()

    def _made(self) -> About:
        """Sent or not, made or not: nobody knows. Look, wait, look again; then one replacement under the same key."""
        stumbled: StumbledError | None = None
        for _ in range(2):
            try:
                made = self._post()
            except NameTakenError:
                # Our own lost create came late, or another worker makes the same sandbox; or the one it made is dead.
                if found := self._awaited():
                    return found
                self._key = f"{digest(self._labels)}-{secrets.token_hex(4)}"
                made = self._post()
            except StumbledError as exc:
                if self._was_refused(exc.exc):
                    raise
                if found := self._awaited():
                    return found
                stumbled = exc
                continue
            return (self._settled() if stumbled else None) or self._seen(made)
        raise stumbled or RuntimeError

    def _post(self) -> str:
        seconds = self._deadline.remaining()
        return self._call(
            lambda: self._cloud.create(self._spec, self._labels, key=self._key, seconds=seconds), "create"
        )

    def _call(self, start: Callable[[], Coroutine[Any, Any, T]], stage: str) -> T:
        future = self._loop.finish(start, self._deadline, stage)
        exc = future.exception()
        if exc is None or isinstance(exc, (NameTakenError, OperationFailed, InvalidRequest)):
            return future.result()
        raise StumbledError(exc)

    def _was_refused(self, exc: BaseException) -> bool:
        match = classify(self._cloud.facts(exc, operation="sandbox", stage="create"))
        return match.category in _REFUSED or match.reason in _NOT_SENT

    def _seen(self, sandbox_id: str) -> About:
        about = self._call(lambda: self._cloud.about(sandbox_id), "create")
        return about or About(id=sandbox_id, labels=dict(self._labels), created=0.0, lease_until=0.0, state=State.DEAD)

    def _awaited(self) -> About | None:
        """A look, and again for a while: a list may be older than what it lists."""
        end = Deadline.after(LOOK_AGAIN)
        while True:
            try:
                if found := self._settled():
                    return found
            except StumbledError:  # a look that fails is repeated; the create's own failure is the one to tell
                self._deadline.check("sandbox", "create")
            if not end.remaining():
                return None
            self._deadline.wait(LOOK_EVERY)

    def _settled(self) -> About | None:
        """The oldest that lives; the others lost the race and are ended, dead ones too."""
        listed = self._call(lambda: self._cloud.list(self._labels), "find")
        ours = sorted((a for a in listed if matches(a.labels, self._labels)), key=lambda a: (a.created, a.id))
        living = [about for about in ours if about.state is not State.DEAD]
        for about in ours:
            if about not in living[:1]:
                self._call(partial(self._cloud.kill, about.id), "create")
        return living[0] if living else None

    def _ready(self, about: About) -> About:
        while about.state is State.STARTING:
            self._deadline.wait(LOOK_EVERY)
            self._deadline.check("sandbox", "create")
            about = self._seen(about.id)
        if about.state is State.DEAD:
            raise failure(self._cloud.name, "create", Category.SANDBOX_LOST, "sandbox_lost")
        return about
