"""Run events: a Redis stream per run, which the CLI shows and a backend can tail.

An event is ``{seq, time, name, data}``: seq the stream id, time in epoch seconds, data a flat object whose
keys are on the allow-list below and whose values are numbers, booleans, ``null`` or short strings of our own.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from worker.stores.catalogue import FIELDS
from worker.stores.redis import Client

Value = str | int | float | bool | None

MAX_EVENTS = 2000
"""Entries a run keeps; a run of three jobs writes about twenty."""

DATA_KEYS = frozenset(FIELDS)
"""Every key an event may carry."""
_SAFE_STRING = re.compile(r"[A-Za-z0-9_.:/=; \-]{0,512}")


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a run's timeline."""

    seq: str
    time: float
    name: str
    data: dict[str, Value]


class EventStore:
    """The timelines of one installation."""

    def __init__(self, client: Client, *, prefix: str, ttl: float) -> None:
        self._client = client
        self._streams = f"{prefix}:events:"
        self._runs = f"{prefix}:runs"
        self._ttl = int(ttl)

    def append(self, run_id: str, name: str, data: Mapping[str, Value]) -> None:
        """Add an event; data that is not on the allow-list is left out."""
        now = time.time()
        key = self._streams + run_id
        with self._client.pipeline(transaction=False) as pipe:
            pipe.xadd(
                key,
                {"time": f"{now:.3f}", "name": name, "data": json.dumps(allowed(data))},
                maxlen=MAX_EVENTS,
                approximate=True,
            )
            pipe.expire(key, self._ttl)
            pipe.zadd(self._runs, {run_id: now})
            pipe.zremrangebyscore(self._runs, "-inf", now - self._ttl)
            pipe.execute()

    def read(self, run_id: str, *, after: str = "-") -> list[Event]:
        """The events of a run, oldest first; ``after`` is the seq of the last one seen."""
        start = after if after == "-" else f"({after}"
        return [_event(seq, fields) for seq, fields in self._client.xrange(self._streams + run_id, min=start)]

    def last(self, run_id: str) -> Event | None:
        """The newest event of a run."""
        found = self._client.xrevrange(self._streams + run_id, count=1)
        return _event(*found[0]) if found else None

    def follow(self, run_id: str, *, after: str = "0", block: float = 1.0) -> Iterator[Event | None]:
        """Yield events as they come, and ``None`` whenever ``block`` seconds went by without one."""
        while True:
            reply = self._client.xread({self._streams + run_id: after}, block=int(block * 1000))
            if not reply:
                yield None
                continue
            for seq, fields in reply[0][1]:
                after = seq
                yield _event(seq, fields)

    def runs(self, limit: int = 50) -> list[tuple[str, float]]:
        """The runs heard of last: (run id, epoch seconds of the last event), newest first."""
        return [(str(run), float(at)) for run, at in self._client.zrevrange(self._runs, 0, limit - 1, withscores=True)]


def allowed(data: Mapping[str, Value]) -> dict[str, Value]:
    """The part of ``data`` that may be seen: known keys, and strings of our own alphabet."""
    return {
        key: value
        for key, value in data.items()
        if key in DATA_KEYS and (not isinstance(value, str) or _SAFE_STRING.fullmatch(value))
    }


def _event(seq: str, fields: Mapping[str, str]) -> Event:
    return Event(seq, float(fields["time"]), fields["name"], json.loads(fields["data"]))
