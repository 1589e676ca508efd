"""What a worker checks before it takes work: settings that would lose or duplicate tasks, and a store that would."""

from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from celery.exceptions import ImproperlyConfigured

from worker import startup_files
from worker.settings import Settings, is_redis

MARGIN = 300.0
"""Seconds by which Redis must wait longer for an acknowledgement than any body takes."""
RABBIT_CONSUMER_TIMEOUT = 1800.0
"""Seconds after which RabbitMQ ends a consumer that has not acknowledged (its default, `consumer_timeout`)."""
OLDEST = {"celery": (5, 7), "billiard": (4, 3, 2)}
"""Older pairs acknowledge and drop the running late-ack task on a cold shutdown (celery/celery#10667)."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, and what it would do."""

    setting: str
    consequence: str

    def __str__(self) -> str:
        return f"{self.setting}: {self.consequence}"


def faults(config: Settings, conf: Any) -> list[Fault]:
    """Look at our settings and at Celery's as they are in force, however they came about, and at what they name."""
    found = [fault for rule in RULES if (fault := rule(config, conf)) is not None]
    return found + _versions() + [Fault(*each) for each in startup_files.unusable(config)]


def beat_faults(config: Settings) -> list[Fault]:
    """The same for beat, which runs no job: only what it uses itself."""
    wrong = startup_files.sentry_dsn(config)
    return [] if wrong is None else [Fault("SANDFERRY_SENTRY_DSN_FILE", wrong)]


def notices(config: Settings, environment: dict[str, str]) -> list[Fault]:
    """Look for what a worker can live with and an operator wants to hear.

    A setting that is misspelt has no effect, and an allow-list without effect allows all.
    """
    return [Fault(*each) for each in (*startup_files.missing(config), *startup_files.misspelt(environment))]


def warnings(config: Settings, client: Any) -> list[Fault]:
    """Ask the record store how it keeps what it promised to keep; raises StoreError when it is away.

    A managed server that does not tell its settings is not warned about.
    """
    policy = client.config_get("maxmemory-policy").get("maxmemory-policy", "noeviction")
    durable = client.config_get("appendonly").get("appendonly", "yes") == "yes"
    found = []
    if policy != "noeviction":
        text = "an evicted record lets a late copy of a finished job run again; set noeviction"
        found.append(Fault("maxmemory-policy", text))
    if not durable:
        text = "after a restart of the store, messages and running jobs are forgotten; set yes"
        found.append(Fault("appendonly", text))
    if not is_redis(config.broker_url) and config.longest_job > RABBIT_CONSUMER_TIMEOUT:
        text = "raise it above the longest job: RabbitMQ ends a consumer that is silent for 30 minutes by default"
        found.append(Fault("consumer_timeout", text))
    return found


def _limits(_: Settings, conf: Any) -> Fault | None:
    soft, hard = conf.task_soft_time_limit, conf.task_time_limit
    if hard is None or (soft is not None and soft >= hard):
        return Fault("task_soft_time_limit", "must be below task_time_limit, or a body is killed before it can end")
    return None


def _limits_and_jobs(config: Settings, conf: Any) -> Fault | None:
    soft = conf.task_soft_time_limit
    if soft is not None and soft <= config.longest_job:
        return Fault("task_soft_time_limit", "must exceed the longest deadline, that of a tool included")
    return None


def _visibility(config: Settings, conf: Any) -> Fault | None:
    if not is_redis(config.broker_url):
        return None
    timeout = (conf.broker_transport_options or {}).get("visibility_timeout", 3600)
    if timeout <= (conf.task_time_limit or config.longest_job):
        return Fault("visibility_timeout", "must exceed task_time_limit, or Redis hands running tasks out again")
    if timeout <= config.longest_job + MARGIN:
        return Fault("visibility_timeout", "must exceed the longest job and its countdowns by more than 300 s")
    return None


def _delivery(_: Settings, conf: Any) -> Fault | None:
    if not conf.task_acks_late or not conf.task_reject_on_worker_lost:
        return Fault("task_acks_late", "and task_reject_on_worker_lost must be on, or a killed worker loses its tasks")
    if conf.task_track_started:
        return Fault("task_track_started", "must be off, or a late duplicate un-finishes a finished task")
    return None


def _eta_limit(_: Settings, conf: Any) -> Fault | None:
    if not conf.worker_eta_task_limit:
        return Fault("worker_eta_task_limit", "must be set, or waiting retries fill the worker's memory")
    return None


def _formats(_: Settings, conf: Any) -> Fault | None:
    if set(conf.accept_content) != {"json"} or conf.task_serializer != "json" or conf.result_serializer != "json":
        return Fault("accept_content", "and the serializers must be json alone: pickle runs what a message says")
    return None


def _results(_: Settings, conf: Any) -> Fault | None:
    if conf.result_extended or conf.task_send_sent_event:
        return Fault("result_extended", "and task_send_sent_event must be off: both show the arguments of tasks")
    return None


def _backend(_: Settings, conf: Any) -> Fault | None:
    from celery.app.backends import by_url  # noqa: PLC0415 - the app has it loaded
    from celery.backends.base import DisabledBackend  # noqa: PLC0415 - same

    try:
        backend, _ = by_url(conf.result_backend)
    except (ImproperlyConfigured, ImportError, AttributeError, ValueError):
        return Fault("SANDFERRY_RESULT_BACKEND", "is no address of a result backend that Celery knows: use redis://")
    if issubclass(backend, DisabledBackend):
        return Fault("SANDFERRY_RESULT_BACKEND", "must be set, or nobody hears what became of a task")
    return None


RULES = (_limits, _limits_and_jobs, _visibility, _delivery, _eta_limit, _formats, _results, _backend)
"""What is asked, in order."""


def _versions() -> list[Fault]:
    text = "is too old: a cold shutdown drops the running task"
    return [Fault(name, text) for name, oldest in OLDEST.items() if _numbers(version(name)) < oldest]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3] if part.isdigit())
