"""Makes, finds and reads the faults of sandboxes of a hosted provider."""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from worker.failures.model import Category, Failure, InvalidRequest, OperationFailed
from worker.sandboxes.base import Spec
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.hosted.cloud import About, Cloud, State
from worker.sandboxes.hosted.creation import Creation
from worker.sandboxes.hosted.faults import lost
from worker.sandboxes.hosted.loop import Loop
from worker.sandboxes.hosted.sandbox import HostedSandbox
from worker.sandboxes.labels import matches, require_complete, require_ours

_FIXED = ("memory_mb", "cpus", "pids")
"""What a template or snapshot decides: asking for it would be asking in vain."""


class HostedProvider:
    """Sandboxes of one account. Only those with our labels exist for it."""

    def __init__(self, cloud: Cloud, *, image: str, allowed_images: tuple[str, ...] = ()) -> None:
        self.name = cloud.name
        self._cloud = cloud
        self._image = image
        self._allowed = allowed_images
        self._loop = Loop(cloud.name)

    def find(self, labels: Mapping[str, str], *, deadline: Deadline) -> list[HostedSandbox]:
        """See :meth:`worker.sandboxes.base.Provider.find`. Dead ones too: they still have to be released."""
        listed = self._loop.call(lambda: self._cloud.list(labels), deadline, "find")
        found = sorted((a for a in listed if matches(a.labels, labels)), key=lambda a: (a.created, a.id))
        return [self._sandbox(about) for about in found]

    def create(self, spec: Spec, labels: Mapping[str, str], *, deadline: Deadline) -> HostedSandbox:
        """See :meth:`worker.sandboxes.base.Provider.create`.

        :raises InvalidRequest: settings do not allow the image (``image_not_allowed``), or the spec asks for what the
            provider's template decides (``unsupported``).
        """
        require_complete(labels)
        self._require_possible(spec)
        creation = Creation(self._cloud, self._loop, spec, labels, deadline)
        try:
            return self._prepared(creation.run(), deadline, spec.env)
        except OperationFailed as exc:
            # A provider that remembers the key of a create answers with the sandbox it made then, dead or not.
            if exc.failure.category is not Category.SANDBOX_LOST:
                raise
        return self._prepared(creation.again(), deadline, spec.env)

    def connect(self, sandbox_id: str, labels: Mapping[str, str], *, deadline: Deadline) -> HostedSandbox:
        """See :meth:`worker.sandboxes.base.Provider.connect`."""
        about = self._about(sandbox_id, labels, deadline, "connect")
        if about is None or about.state is State.DEAD:
            raise lost(self.name, "connect")
        return self._prepared(about, deadline)

    def end(self, sandbox_id: str, labels: Mapping[str, str], *, deadline: Deadline) -> bool:
        """See :meth:`worker.sandboxes.base.Provider.end`."""
        about = self._about(sandbox_id, labels, deadline, "release")
        if about is None:
            return False
        self._sandbox(about).release(deadline=deadline)
        return True

    def facts(self, exc: BaseException, *, operation: str, stage: str) -> Failure:
        """See :meth:`worker.sandboxes.base.Provider.facts`."""
        return self._cloud.facts(exc, operation=operation, stage=stage)

    def _about(self, sandbox_id: str, labels: Mapping[str, str], deadline: Deadline, stage: str) -> About | None:
        """What the provider knows of a sandbox of ours; ``None`` when there is none."""
        if not self._cloud.is_id(sandbox_id):
            raise InvalidRequest("sandbox_id", "malformed")
        about = self._loop.call(lambda: self._cloud.about(sandbox_id), deadline, stage)
        if about is not None:
            require_ours(about.labels, labels)
        return about

    def _sandbox(self, about: About) -> HostedSandbox:
        return HostedSandbox(self._cloud, self._loop, about)

    def _prepared(self, about: About, deadline: Deadline, env: Mapping[str, str] | None = None) -> HostedSandbox:
        sandbox = self._sandbox(about)
        sandbox.prepare(deadline=deadline, env=env)
        return sandbox

    def _require_possible(self, spec: Spec) -> None:
        image = spec.image or self._image
        if image != self._image and not any(fnmatchcase(image, pattern) for pattern in self._allowed):
            raise InvalidRequest("sandbox_spec_image", "image_not_allowed")
        for name in _FIXED:
            if getattr(spec, name) is not None:
                raise InvalidRequest(f"sandbox_spec_{name}", "unsupported")
        if spec.strict:
            raise InvalidRequest("sandbox_spec_strict", "unsupported")
