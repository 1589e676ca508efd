"""The consumer of a worker that outlives the absence of its broker, and messages that are none."""

import json
import logging
from collections.abc import Callable
from typing import Any

from celery.worker.consumer import Consumer

from worker.observability.logs import logger
from worker.retrying.message import malformed, too_deep

log = logger(__name__)
_plain = logging.getLogger(__name__)


class LastingConsumer(Consumer):  # type: ignore[misc]  # Celery is untyped
    """Runs in the worker's main process.

    What cannot be a task is refused for good, and logged without a word of it: Celery would end over some of it.
    """

    def create_task_handler(self, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        """Look at a message before Celery does."""
        receive = super().create_task_handler(*args, **kwargs)

        def handle(message: Any) -> Any:
            fault = _fault(message)
            if fault is not None:
                return self._refuse(message, fault)
            if too_deep(message.payload):
                log.error("request nested too deep", task_id=message.headers["id"])
                _empty(message)
            return receive(message)

        return handle

    def on_connection_error_after_connected(self, exc: Exception) -> Any:
        """Celery 5.7 closes the lost connection; kombu 5.7 then puts unacknowledged messages back through it.

        On Redis that is an AttributeError, and the worker ends ("Unrecoverable error"). The messages stay with the
        broker instead: a body goes on and answers for itself, and the sweep brings back the retries that waited.
        """
        transport = getattr(self.connection, "transport", None)
        for channel in getattr(transport, "channels", None) or ():
            channel.do_restore = False
        return super().on_connection_error_after_connected(exc)

    def _refuse(self, message: Any, fault: str) -> None:
        log.error("message not handled", fault=fault, queue=(message.delivery_info or {}).get("routing_key"))
        message.reject_log_error(_plain, self.connection_errors)


def _empty(message: Any) -> None:
    """Take the request out of a message: the task refuses what is left, and its caller hears of it."""
    message.body = json.dumps([[], {"request": None}, {}]).encode()
    message.content_type, message.content_encoding = "application/json", "utf-8"
    message._decoded_cache = None  # noqa: SLF001 - kombu's memory of what the body was


def _fault(message: Any) -> str | None:
    try:
        payload = message.payload
    except Exception:  # noqa: BLE001 - a decoder raises what it likes, and its words hold what it was given
        return "body"
    return malformed(message.headers, payload)
