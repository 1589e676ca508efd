"""Whose token a clone uses, and how old it is taken to be."""

import time
from types import SimpleNamespace

import pytest
from pydantic import SecretStr

from tasks.clone.credential import age, credential_of, revoke
from tasks.clone.request import parse, repository_of
from worker.failures.model import Credential
from worker.retrying.attempt import Attempt
from worker.sandboxes.deadline import Deadline
from worker.secrets import keyring
from worker.secrets.github import MintedToken
from worker.secrets.sealed import Plaintext, git_subject, seal
from worker.secrets.secret import Secret

URL = "https://github.com/acme/widgets"
APP = {"kind": "github_app", "installation_id": 7}


class GitHub:
    """Mints numbered tokens that live for an hour."""

    def __init__(self) -> None:
        self.minted = 0
        self.revoked: list[str] = []

    def mint(self, *_: str, **__: object) -> MintedToken:
        self.minted += 1
        now = time.time()
        return MintedToken(
            token=Secret(f"minted-{self.minted}"), minted_at=now, expires_at=now + 3600, installation_id=7
        )

    def revoke(self, token: Secret, *, timeout: float) -> bool:
        self.revoked.append(token.reveal())
        return True


@pytest.fixture
def services(tmp_path) -> SimpleNamespace:
    file = tmp_path / "keyring.json"
    keyring.new(file)
    settings = SimpleNamespace(github_url="https://github.com")
    return SimpleNamespace(settings=settings, keyring=keyring.load(file), github=GitHub())


def request_of(credential: dict):
    fields = {"schema": 1, "run_id": "run-1", "sandbox": {"provider": "local", "spec": {}}, "repository": {"url": URL}}
    request = parse({**fields, "credential": credential})
    return request, repository_of(request)


def attempt(*, known: float, carry: str = "") -> Attempt:
    return Attempt(
        task_id="t", run_id="run-1", operation="clone", number=2, attempts=3, fence=2, spent=known,
        first_seen=time.time() - known, known_before=known, carry=carry, deadline=Deadline.after(60),
        events=None,  # type: ignore[arg-type]
    )  # fmt: skip


def box(services: SimpleNamespace, **changes: object) -> str:
    now = time.time()
    fields = {
        "run_id": "run-1", "operation": "clone", "subject": git_subject(URL), "expires_at": now + 600,
        "username": "x-access-token", "secret": SecretStr("carried"),
    }  # fmt: skip
    return seal(services.keyring.current.public_key, Plaintext(**(fields | changes)))


@pytest.mark.parametrize(
    ("minted_at", "known", "seconds"),
    [(None, 50, None), (90, 0, 10), (90, 30, 30), (200, 0, 0), (200, 70, 70), (0, 5, 100)],
)
def test_the_age_is_the_larger_of_two_clocks(minted_at, known, seconds):
    assert age(minted_at, known=known, now=100) == seconds


def test_what_a_worker_mints_late_is_fresh(services):
    request, repository = request_of(APP)
    minted = credential_of(request, repository, attempt(known=61), services)  # GitHub had asked it to wait a minute
    assert minted is not None
    assert minted.source is Credential.MINTED
    assert minted.age == pytest.approx(0, abs=5)


def test_what_a_backend_minted_is_as_old_as_its_task(services):
    request, repository = request_of({"kind": "sealed", "box": box(services, minted_at=time.time() + 900)})
    found = credential_of(request, repository, attempt(known=61), services)
    assert found is not None
    assert found.age == pytest.approx(61, abs=5)


def test_a_minted_token_is_used_again_and_revoked_once(services):
    request, repository = request_of(APP)
    first = attempt(known=0)
    credential_of(request, repository, first, services)
    second = attempt(known=3, carry=first.carry)
    again = credential_of(request, repository, second, services)
    revoke(request, repository, second, services)
    revoke(request, repository, second, services)
    assert again is not None
    assert (again.token.reveal(), services.github.minted, services.github.revoked) == ("minted-1", 1, ["minted-1"])


@pytest.mark.parametrize("why", ["expired", "key_gone"])
def test_a_carried_token_of_no_use_is_replaced_and_stops_no_clean_up(services, tmp_path, why):
    request, repository = request_of(APP)
    carry = box(services, minted_at=0, expires_at=time.time() + (-1 if why == "expired" else 600))
    if why == "key_gone":
        keyring.new(tmp_path / "other.json")
        services.keyring = keyring.load(tmp_path / "other.json")
    revoke(request, repository, attempt(known=4000, carry=carry), services)
    assert services.github.revoked == []
    found = credential_of(request, repository, attempt(known=4000, carry=carry), services)
    assert found is not None
    assert found.token.reveal() == "minted-1"
