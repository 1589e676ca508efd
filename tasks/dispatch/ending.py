"""Ending the tool of a call that nobody waits for any more."""

from tasks.dispatch import launcher
from tasks.dispatch.launcher import ANSWER_LIMIT
from tasks.dispatch.steps import ENDING
from worker.retrying.services import Services
from worker.sandboxes.base import LABEL_RUN
from worker.sandboxes.deadline import Deadline


def end_tool(services: Services, *, run_id: str, dispatch_id: str) -> None:
    """End the tool wherever the ledger says that it was sent; one that has not begun never will.

    Raises whatever the ledger or the provider raises; its own timeout ends the tool as well.
    """
    at = services.ledger.whereabouts(run_id, dispatch_id)
    if at is None:
        return
    deadline = Deadline.after(ENDING)
    sandbox = services.providers.get(at.provider).connect(at.sandbox_id, {LABEL_RUN: run_id}, deadline=deadline)
    place = launcher.place(sandbox.layout.scratch, run_id, dispatch_id)
    # What the tool had printed is of no interest, and more than an answer of it is cut off.
    argv = launcher.command("stop", place, at.nonce, at.generation)
    sandbox.run(argv, deadline=deadline, output_limit=ANSWER_LIMIT)
