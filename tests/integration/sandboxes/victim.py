"""A worker that is killed while its command runs: ``victim.py PROVIDER WHERE IMAGE SANDBOX RUN REQUEST SECONDS``."""

import sys
from pathlib import Path

from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.registry import Registry
from worker.sandboxes.settings import DaytonaSettings, DockerSettings, E2BSettings, LocalSettings, ProviderSettings

provider, where, image, sandbox_id, run, request, seconds = sys.argv[1:]
key = Path(image)  # a hosted provider's
settings = ProviderSettings(
    e2b=E2BSettings(api_key_file=key, api_url=where, sandbox_url=where),
    daytona=DaytonaSettings(api_key_file=key, api_url=where),
    local=LocalSettings(allowed=True, root=Path(where)),
    docker=DockerSettings(url=where, image=image, network="host"),
)
labels = {LABEL_RUN: run, LABEL_REQUEST: request}
sandbox = Registry(settings).get(provider).connect(sandbox_id, labels, deadline=Deadline.after(20))
sandbox.run(["sh", "-c", "trap '' TERM; sleep 301; sleep 301"], deadline=Deadline.after(float(seconds)))
