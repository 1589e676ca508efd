"""Minting against the double: values, refusals, faults, what the logs and errors say."""

import json
import logging
import time
import traceback
from email.utils import formatdate

import jwt
import pytest

from tests.doubles import github as faults
from tests.doubles.github import FaultyGitHub
from tests.doubles.repositories import make_repository
from tests.doubles.thief import Thief
from tests.rig.waiting import promptly
from worker.demo.github_double import INSTALLATION_ID, create_app_key
from worker.failures.model import Category, InvalidRequest, OperationFailed
from worker.secrets.github import GitHubApp
from worker.secrets.github_http import BODY_LIMIT
from worker.secrets.secret import Secret

PRIVATE, PUBLIC = create_app_key()
INSTALLATION = r"^/repos/acme/site/installation$"
TOKENS = rf"^/app/installations/{INSTALLATION_ID}/access_tokens$"
CANARY = "ghs_canary.in.a.body"
CONTROL = json.dumps({"token": "a\nb", "expires_at": "2030-01-01T00:00:00Z"}).encode()
CUT = json.dumps({"id": 1, "token": CANARY}).encode()


@pytest.fixture
def github(tmp_path):
    make_repository(tmp_path, "acme/site")
    with FaultyGitHub(tmp_path, app_id="7", public_key=PUBLIC) as double:
        yield double


@pytest.fixture
def app(github):
    return GitHubApp("7", Secret(PRIVATE), github.url)


def refused(app, owner="acme", repo="site", timeout=10.0, **options):
    """The failure of a mint, after a look at what its exception shows."""
    with pytest.raises(OperationFailed) as caught:
        app.mint(owner, repo, timeout=timeout, **options)
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value.failure)
    assert caught.value.__context__ is None
    for leak in (CANARY, "eyJ", "BEGIN"):
        assert leak not in shown
    assert caught.value.failure.operation == "mint"
    return caught.value.failure


class TestMint:
    def test_a_token_for_one_repository(self, github, app):
        before = time.time()
        minted = app.mint("acme", "site", timeout=10)
        assert minted.installation_id == INSTALLATION_ID
        assert before <= minted.minted_at <= time.time()
        assert 3590 <= minted.expires_at - before <= 3601
        assert github.grants[minted.token.reveal()].repository == "acme/site"
        assert minted.token.reveal() not in repr(minted)
        paths = ["/repos/acme/site/installation", f"/app/installations/{INSTALLATION_ID}/access_tokens"]
        assert [offer.path for offer in github.offers] == paths

    def test_known_installation_is_not_looked_up(self, github, app):
        app.mint("acme", "site", timeout=10, installation_id=INSTALLATION_ID)
        assert [offer.method for offer in github.offers] == ["POST"]

    def test_the_apps_own_token_lives_ten_minutes_from_a_minute_ago(self, github, app):
        app.mint("acme", "site", timeout=10)
        claims = jwt.decode(github.authorizations()[0].split()[1], PUBLIC, algorithms=["RS256"])
        assert claims["exp"] - claims["iat"] == 600
        assert -2 <= claims["iat"] + 60 - time.time() <= 2
        assert claims["iss"] == "7"

    def test_a_renamed_repository_is_followed_on_the_same_host(self, github, app):
        github.fault(faults.redirect(github.url, "/acme/old/", "/acme/site/"), path="acme/old")
        github.fault(faults.redirect(github.url, "/acme/old/", "/acme/site/", code=307), path="acme/old")
        assert app._installation("acme", "old", f"Bearer {app._app_token()}", time.monotonic() + 5) == INSTALLATION_ID

    @pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb", "a?b", "a#b", "a\n", ".git"])
    def test_an_unsafe_name_is_never_sent(self, github, app, name):
        for owner, repo in ((name, "site"), ("acme", name)):
            with pytest.raises(InvalidRequest) as caught:
                app.mint(owner, repo, timeout=5)
            assert caught.value.reason == "unsafe_component"
        assert github.offers == []

    def test_logs_say_nothing(self, github, app, caplog):
        caplog.set_level(logging.DEBUG)
        minted = app.mint("acme", "site", timeout=10)
        assert app.revoke(minted.token, timeout=5)
        assert not any(leak in caplog.text for leak in (minted.token.reveal(), "Bearer", "eyJ", "access_tokens"))


class TestFinalRefusals:
    def test_not_installed(self, app):
        failure = refused(app, repo="elsewhere")
        assert (failure.category, failure.reason) == (Category.NOT_FOUND, "app_not_installed")
        assert (failure.stage, failure.http_status) == ("installation", 404)

    def test_wrong_key(self, github):
        failure = refused(GitHubApp("7", Secret(create_app_key()[0]), github.url))
        assert (failure.category, failure.reason) == (Category.AUTH_DENIED, "app_authentication_failed")

    @pytest.mark.parametrize("key", ["", "garbage", PUBLIC])
    def test_unusable_key(self, github, key):
        failure = refused(GitHubApp("7", Secret(key), github.url))
        assert (failure.category, failure.reason) == (Category.AUTH_DENIED, "app_key_invalid")
        assert github.offers == []

    def test_suspended_installation_that_is_still_shown(self, github, app):
        body = json.dumps({"id": INSTALLATION_ID, "suspended_at": "2026-01-01T00:00:00Z"}).encode()
        github.fault(faults.status(200, body), path=INSTALLATION)
        failure = refused(app)
        assert (failure.category, failure.reason) == (Category.POLICY_DENIED, "installation_suspended")

    @pytest.mark.parametrize(
        "answer",
        [
            (401, b"", Category.AUTH_DENIED, "app_authentication_failed"),
            (403, b'{"message": "installation has been suspended"}', "policy_denied", "installation_suspended"),
            (403, b'{"message": "Resource not accessible"}', "policy_denied", "app_forbidden"),
            (404, b"", Category.NOT_FOUND, "app_not_installed"),
            (422, b'{"message": "repository does not exist"}', "policy_denied", "repository_not_covered"),
            (
                422,
                b'{"message": "The permissions requested are not granted"}',
                "policy_denied",
                "permission_not_granted",
            ),
            (418, b"", Category.UNKNOWN, "unexpected_status"),
        ],
    )
    @pytest.mark.parametrize("place", [("installation", INSTALLATION), ("access_token", TOKENS)])
    def test_table(self, github, app, place, answer):
        (stage, path), (code, body, category, reason) = place, answer
        github.fault(faults.status(code, body), path=path, times=None)
        failure = refused(app)
        assert (failure.category, failure.reason) == (category, reason)
        assert (failure.stage, failure.http_status) == (stage, code)
        assert failure.text == body.decode()
        assert github.requests().total() == (1 if stage == "installation" else 2), "a refusal is not asked for twice"

    @pytest.mark.parametrize("path", [INSTALLATION, TOKENS])
    def test_another_host_is_not_followed(self, github, app, path):
        with Thief() as thief:
            github.fault(faults.redirect(thief.url, code=307), path=path, times=None)
            failure = refused(app)
            assert (failure.category, failure.reason) == (Category.POLICY_DENIED, "redirect_refused")
            assert thief.offers == []

    def test_a_loop_of_redirects_ends(self, github, app):
        github.fault(faults.redirect(github.url, "installation", "installation?x"), path="installation", times=None)
        assert refused(app).reason == "redirect_refused"
        assert github.requests().total() == 4


class TestRateLimits:
    @pytest.mark.parametrize("code", [403, 429])
    @pytest.mark.parametrize(
        "answer",
        [
            ({"Retry_After": "17"}, b"", 17, 17),
            ({"Retry_After": lambda: formatdate(time.time() + 1000, usegmt=True)}, b"", 900, 1000),
            ({"Retry_After": formatdate(0, usegmt=True)}, b"", 0, 0),
            (
                {"x-ratelimit-remaining": "0", "x-ratelimit-reset": lambda: str(int(time.time()) + 2000)},
                b"",
                1900,
                2000,
            ),
            ({"x-ratelimit-remaining": "0"}, b"", 60, 60),
            ({}, b'{"message": "You have exceeded a secondary rate limit."}', 60, 60),
            ({"Retry_After": "999999999"}, b"", 86400, 86400),
            ({"Retry_After": "soon"}, b"API rate limit exceeded", 60, 60),
        ],
    )
    def test_wait_is_githubs_own(self, github, app, code, answer):
        given, body, least, most = answer
        headers = {name: value() if callable(value) else value for name, value in given.items()}
        github.fault(faults.status(code, body, **headers), path=TOKENS, times=None)
        failure = refused(app)
        assert (failure.category, failure.reason) == (Category.RATE_LIMITED, "rate_limit")
        assert least <= failure.retry_after <= most
        assert failure.http_status == code
        assert github.requests().total() == 2, "a wait is for Celery"


class TestTransientFaults:
    @pytest.mark.parametrize("path", [INSTALLATION, TOKENS])
    @pytest.mark.parametrize(
        "act",
        [
            *(faults.status(500), faults.status(502, b"<html>"), faults.status(503), faults.reset()),
            *(faults.close_before(), faults.lose_reply(), faults.truncated(CUT)),
        ],
        ids=["500", "502", "503", "rst", "close", "lost", "truncated"],
    )
    def test_one_fault_is_repeated_at_once(self, github, app, path, act):
        github.fault(act, path=path)
        assert app.mint("acme", "site", timeout=10).installation_id == INSTALLATION_ID

    @pytest.mark.parametrize(
        ("act", "category", "reason"),
        [
            (faults.status(503, Retry_After="9"), Category.TRANSIENT_SERVER, "github_unavailable"),
            (faults.reset(), Category.TRANSIENT_NETWORK, "github_unreachable"),
            (faults.truncated(json.dumps({"token": CANARY}).encode(), 201), "transient_network", "github_unreachable"),
            (faults.garbage(b"\xff{", 201), Category.TRANSIENT_SERVER, "github_answer_garbled"),
            (faults.garbage(json.dumps({"token": CANARY}).encode(), 201), "transient_server", "github_answer_garbled"),
            (faults.garbage(CONTROL, 201), Category.TRANSIENT_SERVER, "github_answer_garbled"),
            (faults.garbage(b"[" * 100_000, 201), Category.TRANSIENT_SERVER, "github_answer_garbled"),
            (faults.garbage(b" " * BODY_LIMIT + b"{}", 201), Category.TRANSIENT_SERVER, "github_answer_garbled"),
            (faults.garbage(b"{}", 200), Category.TRANSIENT_SERVER, "github_answer_garbled"),
        ],
        ids=["503", "rst", "cut", "garbage", "no-end", "control", "nested", "huge", "200"],
    )
    def test_a_lasting_fault_is_left_for_a_retry(self, github, app, act, category, reason):
        github.fault(act, path=TOKENS, times=None)
        failure = refused(app)
        assert (failure.category, failure.reason, failure.stage) == (category, reason, "access_token")
        assert failure.idempotent
        assert CANARY not in failure.text
        assert failure.retry_after == (9 if failure.http_status == 503 else None)

    def test_nobody_listens(self):
        failure = refused(GitHubApp("7", Secret(PRIVATE), "http://127.0.0.1:1"))
        assert (failure.category, failure.exception) == (Category.TRANSIENT_NETWORK, "httpx.ConnectError")

    def test_a_slow_answer_ends_in_time(self, github, app):
        github.fault(faults.delay(30), path=TOKENS, times=None)
        start = time.monotonic()
        failure = refused(app, timeout=1.0)
        assert time.monotonic() - start < promptly(3)
        assert (failure.category, failure.exception) == (Category.TRANSIENT_NETWORK, "httpx.ReadTimeout")

    def test_a_dripping_answer_ends_in_time(self, github, app):
        def drip(handler):
            handler.send_response(201)
            handler.send_header("Content-Length", "100000")
            handler.end_headers()
            while not handler.double.closing.wait(0.05):
                handler.wfile.write(b" ")
            return True

        github.fault(drip, path=TOKENS, times=None)
        start = time.monotonic()
        assert refused(app, timeout=1.0).category is Category.TRANSIENT_NETWORK
        assert time.monotonic() - start < promptly(3)


class TestRevoke:
    def test_ends_the_token(self, github, app):
        minted = app.mint("acme", "site", timeout=10)
        assert app.revoke(minted.token, timeout=5) is True
        assert github.grants[minted.token.reveal()].revoked
        assert app.revoke(minted.token, timeout=5) is False

    @pytest.mark.parametrize("act", [faults.status(500), faults.reset(), faults.status(204)], ids=["500", "rst", "204"])
    def test_never_raises(self, github, app, act):
        rule = github.fault(act, path="^/installation/token$", times=None)
        assert app.revoke(Secret("ghs_x"), timeout=5) is (rule.seen == 1)

    def test_a_token_that_no_header_can_carry(self, app):
        assert app.revoke(Secret("gh\ns_\u20ac"), timeout=1) is False

    def test_nobody_listens(self):
        assert GitHubApp("7", Secret(PRIVATE), "http://127.0.0.1:1").revoke(Secret("x"), timeout=1) is False
