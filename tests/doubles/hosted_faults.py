"""Faults by rule for the doubles of hosted providers."""

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from worker.demo.hosted.web import CutError, Reply, Request

Act = Callable[[Request, Callable[[], Reply]], Reply]
"""Gets the request and what would answer it; may call that, or not, before it answers otherwise."""


@dataclass(slots=True, kw_only=True)
class Fault:
    """What goes wrong, and where: ``path`` is searched in the path, ``method`` compared, if they are given.

    Of the matching requests it skips ``skip`` and spoils ``times`` (``None``: all).
    """

    act: Act
    path: str = ""
    method: str | None = None
    skip: int = 0
    times: int | None = 1
    seen: int = field(default=0, init=False)

    def claims(self, request: Request) -> bool:
        if self.method not in (None, request.method) or not re.search(self.path, request.path):
            return False
        self.seen += 1
        return self.seen > self.skip and (self.times is None or self.seen <= self.skip + self.times)


class Faulty:
    """Mixed in before a double."""

    faults: list[Fault]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.faults = []
        self.seen: list[tuple[str, str]] = []

    def fault(self, act: Act, **where: Any) -> Fault:
        fault = Fault(act=act, **where)
        self.faults.append(fault)
        return fault

    def reply(self, request: Request) -> Reply:
        self.seen.append((request.method, request.path))
        for fault in self.faults:
            if fault.claims(request):
                return fault.act(request, lambda: super(Faulty, self).reply(request))  # type: ignore[misc]
        return super().reply(request)  # type: ignore[misc]


def cut_before(_: Request, __: Callable[[], Reply]) -> Reply:
    """The line is cut; nothing was done."""
    raise CutError


def cut_after(_: Request, proceed: Callable[[], Reply]) -> Reply:
    """All is done; the line is cut before a word of the answer."""
    body = proceed().body
    if not isinstance(body, bytes):
        for _piece in body:
            pass
    raise CutError


def status(code: int, body: bytes = b"", *, acts: bool = False, **headers: str) -> Act:
    """Another answer, instead of doing it or after it was done."""

    def act(_: Request, proceed: Callable[[], Reply]) -> Reply:
        if acts:
            proceed()
        return Reply(code, body, {name.replace("_", "-"): value for name, value in headers.items()})

    return act


def json_status(code: int, value: Any, **more: Any) -> Act:
    """Same, with a JSON body."""
    return status(code, json.dumps(value).encode(), Content_Type="application/json", **more)


def slow(seconds: float) -> Act:
    """Done and answered late."""

    def act(_: Request, proceed: Callable[[], Reply]) -> Reply:
        reply = proceed()
        time.sleep(seconds)
        return reply

    return act


def cut_body(size: int) -> Act:
    """Done, and the line is cut after ``size`` bytes of the body."""
    return lambda _, proceed: replace(proceed(), cut_after=size)


def slow_body(seconds: float, size: int = 1000) -> Act:
    """Done; the body stands still after ``size`` bytes."""

    def act(_: Request, proceed: Callable[[], Reply]) -> Reply:
        reply = proceed()
        whole = reply.body

        def pieces() -> Iterator[bytes]:
            assert isinstance(whole, bytes)
            yield whole[:size]
            time.sleep(seconds)
            yield whole[size:]

        return replace(reply, body=pieces())

    return act
