"""Logs: one JSON object a line, fixed messages, data in snake_case fields, never command output."""

import logging
import logging.config
import sys
from typing import Any

import structlog

from worker.settings import Settings

_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(allow=["ticker", "exception"]),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def logger(name: str) -> Any:
    """Make the structured logger of a module."""
    return structlog.stdlib.get_logger(name)


def configure(config: Settings) -> None:
    """Send every log line of the process, Celery's too, to stderr in one form."""
    render: Any = structlog.dev.ConsoleRenderer() if _for_people(config) else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "line": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "foreign_pre_chain": _SHARED,
                    "processors": [
                        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                        structlog.processors.format_exc_info,
                        render,
                    ],
                }
            },
            "filters": {"unknown_task": {"()": UnknownTaskFilter}, "result": {"()": ResultFilter}},
            "handlers": {
                "stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["unknown_task", "result"]}
            },
            "root": {"handlers": ["stderr"], "level": config.log_level},
            # These two name URLs and headers, which may hold what must not be logged.
            "loggers": {
                "httpx": {"level": "WARNING"},
                "httpcore": {"level": "WARNING"},
                "urllib3": {"level": "WARNING"},
            },
        }
    )


def _for_people(config: Settings) -> bool:
    return config.log_format == "console" or (config.log_format == "auto" and sys.stderr.isatty())


class UnknownTaskFilter(logging.Filter):
    """Celery logs the whole body of a message it cannot handle; keep the fact, drop the body."""

    BODIES = ("Received and deleted", "Received unregistered", "Received invalid", "Can't decode")
    """How the lines of celery.worker.consumer.consumer begin that carry a message body."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the lines of the consumer that carry a message body."""
        if record.name == "celery.worker.consumer.consumer" and str(record.msg).startswith(self.BODIES):
            record.msg, record.args, record.exc_info = "message not handled", (), None
        return True


class ResultFilter(logging.Filter):
    """Celery logs what a task returned; a result may hold what a tool printed."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the lines of celery.app.trace that carry a return value."""
        if record.name == "celery.app.trace" and isinstance(record.args, dict) and "return_value" in record.args:
            record.args = {**record.args, "return_value": "<hidden>"}
        return True


def bind(**fields: str | int) -> None:
    """Put the same keys on every line of this task."""
    structlog.contextvars.bind_contextvars(**fields)


def clear() -> None:
    """Forget them, so that nothing leaks into the next task."""
    structlog.contextvars.clear_contextvars()
