"""A worker that is killed while its command runs: ``victim.py PROVIDER WHERE IMAGE SANDBOX RUN REQUEST SECONDS``."""

import sys
from pathlib import Path

from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.registry import Registry
from worker.sandboxes.settings import DockerSettings, LocalSettings, ProviderSettings

provider, where, image, sandbox_id, run, request, seconds = sys.argv[1:]
settings = ProviderSettings(
    local=LocalSettings(allowed=True, root=Path(where)),
    docker=DockerSettings(url=where, image=image, network="host"),
)
labels = {LABEL_RUN: run, LABEL_REQUEST: request}
sandbox = Registry(settings).get(provider).connect(sandbox_id, labels, deadline=Deadline.after(20))
sandbox.run(["sh", "-c", "trap '' TERM; sleep 301; sleep 301"], deadline=Deadline.after(float(seconds)))
