"""Installation tokens of a GitHub App: minted for one repository, to read; revoked when done."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote

from worker.failures.model import Category, Failure, InvalidRequest, OperationFailed
from worker.secrets.github_answers import Answer, failure, read_installation, read_token, refusal
from worker.secrets.github_http import GitHubClient, Question
from worker.secrets.secret import Secret
from worker.secrets.subject import is_component

T = TypeVar("T")

API_URL = "https://api.github.com"
USERNAME = "x-access-token"
"""The user name that goes with an installation token over HTTP (GitHub: "Authenticating as an installation")."""
JWT_SECONDS = 600
"""Life of the App's own token; GitHub refuses more than ten minutes."""
CLOCK_SKEW = 60
"""Seconds by which it is back-dated, as GitHub recommends against clock drift."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MintedToken:
    """A fresh installation token. Dates are seconds since 1970; ``minted_at`` by this machine's clock."""

    token: Secret
    minted_at: float
    expires_at: float
    installation_id: int


class GitHubApp:
    """A GitHub App and its private key (PEM). ``api_url`` is GitHub's or an Enterprise server's."""

    def __init__(
        self,
        app_id: str,
        private_key: Secret,
        api_url: str = API_URL,
        *,
        proxy: str | None = None,
        ca_file: str | None = None,
    ) -> None:
        self._app_id = app_id
        self._private_key = private_key
        self._client = GitHubClient(api_url, proxy=proxy, ca_file=ca_file)

    def mint(self, owner: str, repo: str, *, timeout: float, installation_id: int | None = None) -> MintedToken:
        """A token for ``owner/repo`` alone, ``contents: read``, within ``timeout`` seconds.

        A token that was minted but whose answer was lost is not revoked; it ends by itself in an hour.

        :raises InvalidRequest: owner or repository is no safe name (``unsafe_component``).
        :raises OperationFailed: operation ``mint``, stage ``installation`` or ``access_token``; category and
            reason are set. Final: ``app_not_installed``, ``repository_not_covered``,
            ``permission_not_granted``, ``installation_suspended``, ``app_forbidden``,
            ``app_authentication_failed``, ``app_key_invalid``, ``redirect_refused``, ``unexpected_status``. To
            be retried: ``rate_limited`` (with ``retry_after``), ``github_unavailable``,
            ``github_unreachable``, ``github_answer_garbled``.
        """
        if not (is_component(owner) and is_component(repo)):
            raise InvalidRequest("url", "unsafe_component")
        until = time.monotonic() + timeout
        bearer = f"Bearer {self._app_token()}"
        if installation_id is None:
            installation_id = self._installation(owner, repo, bearer, until)
        return self._access_token(installation_id, repo, bearer, until)

    def revoke(self, token: Secret, *, timeout: float) -> bool:
        """End a token now; whether GitHub confirmed it. Never raises: the token ends by itself in an hour."""
        try:
            question = Question(
                stage="revoke",
                method="DELETE",
                path="/installation/token",
                authorization=f"Bearer {token.reveal()}",
            )
            answer = self._client.ask(question, until=time.monotonic() + timeout)
        except Exception:  # noqa: BLE001 - a clean-up must not turn a finished job into a failed one
            return False
        return isinstance(answer, Answer) and answer.status == 204

    def _installation(self, owner: str, repo: str, bearer: str, until: float) -> int:
        question = Question(
            stage="installation",
            method="GET",
            path=f"/repos/{quote(owner)}/{quote(repo)}/installation",
            authorization=bearer,
        )
        number, suspended = self._read(question, 200, read_installation, until)
        if suspended:
            raise OperationFailed(failure(question.stage, Category.POLICY_DENIED, "installation_suspended"))
        return number

    def _access_token(self, installation_id: int, repo: str, bearer: str, until: float) -> MintedToken:
        question = Question(
            stage="access_token",
            method="POST",
            path=f"/app/installations/{installation_id}/access_tokens",
            authorization=bearer,
            body={"repositories": [repo], "permissions": {"contents": "read"}},
        )
        token, expires_at = self._read(question, 201, read_token, until)
        return MintedToken(
            token=Secret(token), minted_at=time.time(), expires_at=expires_at, installation_id=installation_id
        )

    def _read(self, question: Question, status: int, read: Callable[[Answer], T | None], until: float) -> T:
        answer = self._client.ask(question, until=until)
        if isinstance(answer, Failure):
            raise OperationFailed(answer)
        found = read(answer) if answer.status == status else None
        if found is None:
            raise OperationFailed(refusal(question.stage, answer, time.time()))
        return found

    def _app_token(self) -> str:
        import jwt  # noqa: PLC0415 - worker memory is budgeted

        issued = int(time.time()) - CLOCK_SKEW
        claims = {"iat": issued, "exp": issued + JWT_SECONDS, "iss": self._app_id}
        try:
            return jwt.encode(claims, self._private_key.reveal(), algorithm="RS256")
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError):  # the last one for a public key
            pass
        raise OperationFailed(failure("installation", Category.AUTH_DENIED, "app_key_invalid"))
