"""A task that was closed from outside: its body is gone, what it left behind is not."""

from worker.failures.model import Category, InvalidRequest, Verdict
from worker.retrying.attempt import Attempt
from worker.retrying.message import request_of
from worker.retrying.task import ClassifiedTask
from worker.sandboxes.deadline import Deadline
from worker.stores.attempts import Record

TIME = 60.0
"""Seconds to settle one task."""


def settle(task: ClassifiedTask, record: Record) -> None:
    """Do what the job does after its last attempt, with what the record knows of it.

    ``record`` is terminal and has its envelope. Raises whatever the job's own ``settle`` raises.
    """
    message, payload = record.envelope or {}, record.payload
    try:
        request = task.parse(request_of(tuple(message["args"]), message["kwargs"]))
    except InvalidRequest:
        return  # refused at once: there was never anything to clean up
    verdict = Verdict(category=Category(payload["category"]), reason=payload["code"], retry=False)
    task.settle(request, _after(task, record), verdict)


def _after(task: ClassifiedTask, record: Record) -> Attempt:
    return Attempt(
        task_id=record.task_id,
        run_id=record.run_id,
        operation=task.operation,
        number=record.attempt,
        attempts=task.schedule.attempts,
        fence=record.fence,
        spent=0.0,
        first_seen=0.0,
        carry=record.carry,
        deadline=Deadline.after(TIME),
        ended=True,
        stage="outcome",  # nobody knows how far it came
        events=task.services.events,
    )
