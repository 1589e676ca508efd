"""The connection to the record store, and the Lua scripts that act on it."""

from functools import lru_cache
from importlib.resources import files
from typing import Any

import redis
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

Client = Any
"""A `redis.Redis`; its own types are the union of its sync and async replies, so ours are checked here."""
StoreError = redis.RedisError

_PASSING = (
    redis.exceptions.ReadOnlyError,
    redis.exceptions.OutOfMemoryError,
    redis.exceptions.ClusterDownError,
    redis.exceptions.MasterDownError,
    redis.exceptions.TryAgainError,
)
"""Errors of a failover, a cluster that moves, a server that is full."""
_PASSING_WORDS = ("BUSY ", "LOADING ", "MISCONF ", "NOREPLICAS ")
"""The same for errors that have no class: a long script, a start, a full disk, too few replicas."""

SOCKET_TIMEOUT = 5.0
"""Seconds; a store that answers slower than this is treated as away."""


def connect(url: str) -> Client:
    """Make a client that reconnects: 3 tries within about half a second, then :data:`StoreError`."""
    return redis.Redis.from_url(
        url,
        decode_responses=True,
        socket_timeout=SOCKET_TIMEOUT,
        socket_connect_timeout=SOCKET_TIMEOUT,
        health_check_interval=30,
        retry=Retry(ExponentialBackoff(cap=0.5, base=0.05), 3),
        retry_on_error=[redis.ConnectionError, redis.TimeoutError],
    )


def is_outage(exc: BaseException) -> bool:
    """Whether waiting may help: the store is away. A wrong question it will answer the same again."""
    if isinstance(exc, redis.ResponseError):
        return isinstance(exc, _PASSING) or str(exc).startswith(_PASSING_WORDS)
    return isinstance(exc, StoreError) and not isinstance(exc, redis.DataError)


@lru_cache
def _source(name: str) -> str:
    return files("worker.stores").joinpath("lua", f"{name}.lua").read_text(encoding="ascii")


def script(client: Client, name: str) -> Any:
    """Register the Lua script ``name``; it is sent once and called by its digest."""
    return client.register_script(_source(name))


def text(value: Any) -> str:
    """Read a reply that is a string or nil."""
    return "" if value is None else str(value)
