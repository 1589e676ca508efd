"""Bounded HTTP to GitHub's API: one answer, or the fact that there was none. Tells the logs nothing."""

import logging
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from worker.failures.model import Category, Failure
from worker.secrets.github_answers import Answer, failure

if TYPE_CHECKING:
    import ssl

    import httpx

BODY_LIMIT = 256 * 1024
"""Bytes of an answer that are read; GitHub's largest, an installation, is about 6 kB."""
REDIRECTS = 3
"""Redirects on the same origin that are followed: GitHub answers 301 for a renamed repository."""
QUICK_RETRY_WAIT = 0.5
"""Seconds before the one retry inside an attempt; longer waits belong to Celery (design, section 3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request: the step it belongs to, and what is sent. ``body`` is sent as JSON."""

    stage: str
    method: str
    path: str
    authorization: str = field(repr=False)
    body: object = None


class GitHubClient:
    """Requests to one API origin. Proxy and CA come from settings, never from the environment."""

    def __init__(self, api_url: str, *, proxy: str | None = None, ca_file: str | None = None) -> None:
        self._api_url = api_url.rstrip("/")
        self._proxy = proxy
        self._ca_file = ca_file

    def ask(self, question: Question, *, until: float) -> Answer | Failure:
        """Ask, and once more after a transient fault if there is time before ``until`` (monotonic seconds)."""
        result = self._once(question, until)
        if _transient(result) and until - time.monotonic() > 2 * QUICK_RETRY_WAIT:
            time.sleep(QUICK_RETRY_WAIT)
            result = self._once(question, until)
        return result

    def _once(self, question: Question, until: float) -> Answer | Failure:
        import httpx  # noqa: PLC0415 - worker memory is budgeted

        _quieten()
        try:
            with self._client(question.authorization) as client:
                return _follow(client, question, f"{self._api_url}{question.path}", until)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            name = f"{type(error).__module__}.{type(error).__name__}"
        # Made outside the except block: the request in the error's context holds the credential.
        return failure(question.stage, Category.TRANSIENT_NETWORK, "github_unreachable", exception=name)

    @cached_property
    def _trust(self) -> "ssl.SSLContext":
        import ssl  # noqa: PLC0415 - same as httpx

        import httpx  # noqa: PLC0415 - worker memory is budgeted

        if self._ca_file:
            return ssl.create_default_context(cafile=self._ca_file)
        return httpx.create_ssl_context(trust_env=False)  # 25 ms: made once

    def _client(self, authorization: str) -> "httpx.Client":
        import httpx  # noqa: PLC0415 - worker memory is budgeted

        headers = {
            "authorization": authorization,
            "accept": "application/vnd.github+json",
            "accept-encoding": "identity",  # what is read is what was sent: no body inflates in memory
            "x-github-api-version": "2022-11-28",
            "user-agent": "sandferry",
        }
        return httpx.Client(
            headers=headers, proxy=self._proxy, verify=self._trust, trust_env=False, follow_redirects=False
        )


def _transient(result: Answer | Failure) -> bool:
    return isinstance(result, Failure) or result.status >= 500 or result.status == 408


def _follow(client: "httpx.Client", question: Question, url: str, until: float) -> Answer:
    answer = _exchange(client, question, url, until)
    for _ in range(REDIRECTS):
        target = urljoin(url, answer.headers.get("location", url))
        if question.method != "GET" or not 300 <= answer.status < 400 or not _same_origin(url, target):
            break
        url = target
        answer = _exchange(client, question, url, until)
    return answer


def _same_origin(one: str, other: str) -> bool:
    import httpx  # noqa: PLC0415 - worker memory is budgeted

    here, there = httpx.URL(one), httpx.URL(other)
    return (here.scheme, here.netloc) == (there.scheme, there.netloc) and one != other


def _exchange(client: "httpx.Client", question: Question, url: str, until: float) -> Answer:
    with client.stream(question.method, url, json=question.body, timeout=_left(until)) as response:
        data = bytearray()
        for chunk in response.iter_raw():
            data += chunk
            if len(data) > BODY_LIMIT:
                break
            _left(until)  # a server that drips never meets a timeout of httpx
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Answer(status=response.status_code, headers=headers, body=bytes(data[:BODY_LIMIT]))


def _left(until: float) -> float:
    import httpx  # noqa: PLC0415 - worker memory is budgeted

    left = until - time.monotonic()
    if left <= 0:
        raise httpx.ReadTimeout("out of time")
    return left


def _quieten() -> None:
    # httpx logs every URL at INFO, httpcore every header at DEBUG, whatever the level of the root logger is.
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
