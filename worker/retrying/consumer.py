"""The consumer of a worker that outlives the absence of its broker."""

from typing import Any

from celery.worker.consumer import Consumer


class LastingConsumer(Consumer):  # type: ignore[misc]  # Celery is untyped
    """Runs in the worker's main process."""

    def on_connection_error_after_connected(self, exc: Exception) -> Any:
        """Celery 5.7 closes the lost connection; kombu 5.7 then puts unacknowledged messages back through it.

        On Redis that is an AttributeError, and the worker ends ("Unrecoverable error"). The messages stay with the
        broker instead: a body goes on and answers for itself, and the sweep brings back the retries that waited.
        """
        transport = getattr(self.connection, "transport", None)
        for channel in getattr(transport, "channels", None) or ():
            channel.do_restore = False
        return super().on_connection_error_after_connected(exc)
