"""Real git against the double: the challenge, replication lag, revocation, thefts, faults."""

import base64
import os
import random
import shutil
import time

import pytest

from tests.doubles import github as faults
from tests.doubles.github import FaultyGitHub
from tests.doubles.repositories import bound_helper, git, make_repository
from tests.doubles.thief import Thief
from worker.demo.github_double import create_app_key
from worker.secrets.github import GitHubApp
from worker.secrets.secret import Secret

PRIVATE, PUBLIC = create_app_key()
STATIC = "ghp_static.token"
# Without its filter in the config (which we keep away), `git lfs pull` fetches, says 0, and leaves pointers.
LFS = [
    *("-c", "filter.lfs.clean=git-lfs clean -- %f", "-c", "filter.lfs.smudge=git-lfs smudge -- %f"),
    *("-c", "filter.lfs.process=git-lfs filter-process", "-c", "filter.lfs.required=true"),
]


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "srv"
    root.mkdir()
    return root


@pytest.fixture
def commit(root):
    return make_repository(root, "acme/site", {"README.md": b"hello\n", "big.bin": random.Random(7).randbytes(1 << 20)})


def double(root, **options):
    return FaultyGitHub(root, app_id="7", public_key=PUBLIC, static_tokens={STATIC: "acme/site"}, **options)


def app(github):
    return GitHubApp("7", Secret(PRIVATE), github.url)


def clone(github, target, token=None, repo="site", *, origin=None):
    url = github.git_url("acme", repo)
    env = bound_helper(origin or url, token) if token else {"GIT_CONFIG_COUNT": "0"}
    return git("clone", "-q", "--", url, str(target), env=env, check=False)


class TestClone:
    def test_static_token_clones_and_is_sent_only_after_a_challenge(self, root, commit, tmp_path):
        with double(root) as github:
            done = clone(github, tmp_path / "c", STATIC)
            assert done.returncode == 0, done.stderr
            assert git("rev-parse", "HEAD", cwd=tmp_path / "c").stdout.strip() == commit
            assert github.offers[0].authorization is None
            expected = "Basic " + base64.b64encode(f"x-access-token:{STATIC}".encode()).decode()
            assert set(github.authorizations()) == {expected}
            assert STATIC not in (tmp_path / "c/.git/config").read_text()

    @pytest.mark.parametrize("lag", [0, 1, 2])
    def test_same_minted_token_is_admitted_after_its_lag(self, root, commit, tmp_path, lag):
        with double(root, lag_rejections=lag) as github:
            token = app(github).mint("acme", "site", timeout=10).token.reveal()
            assert len(token) > 300
            for attempt in range(lag):
                done = clone(github, tmp_path / f"c{attempt}", token)
                assert done.returncode == 128
                assert "remote: Repository not found." in done.stderr
                assert not (tmp_path / f"c{attempt}").exists()
            assert clone(github, tmp_path / "c", token).returncode == 0
            assert git("rev-parse", "HEAD", cwd=tmp_path / "c").stdout.strip() == commit
            assert (github.counts["mints"], github.counts["rejections"]) == (1, lag)

    def test_lag_in_seconds(self, root, commit, tmp_path):
        with double(root, lag_seconds=0.6) as github:
            token = app(github).mint("acme", "site", timeout=10).token.reveal()
            assert clone(github, tmp_path / "c1", token).returncode == 128
            end = time.monotonic() + 10
            while clone(github, tmp_path / "c2", token).returncode and time.monotonic() < end:
                assert github.counts["mints"] == 1
            assert (tmp_path / "c2/README.md").read_bytes() == b"hello\n"

    def test_anonymous_gets_401_and_unknown_token_404(self, root, commit, tmp_path):
        with double(root) as github:
            assert "could not read Username" in clone(github, tmp_path / "a").stderr
            assert "Repository not found." in clone(github, tmp_path / "b", "ghs_unknown").stderr
            assert github.counts["rejections"] == 1

    def test_public_repository_needs_no_credential(self, root, commit, tmp_path):
        with double(root, public=["acme/site"]) as github:
            assert clone(github, tmp_path / "c").returncode == 0
            assert github.authorizations() == []

    def test_token_of_one_repository_does_not_open_another(self, root, commit, tmp_path):
        make_repository(root, "acme/other")
        with double(root) as github:
            token = app(github).mint("acme", "site", timeout=10).token.reveal()
            assert clone(github, tmp_path / "c", token, "other").returncode == 128
            assert clone(github, tmp_path / "d", token).returncode == 0

    def test_revoked_token_is_rejected(self, root, commit, tmp_path):
        with double(root) as github:
            minted = app(github).mint("acme", "site", timeout=10)
            assert app(github).revoke(minted.token, timeout=5) is True
            assert clone(github, tmp_path / "c", minted.token.reveal()).returncode == 128
            assert app(github).revoke(minted.token, timeout=5) is False
            assert github.counts["revokes"] == 1

    def test_large_gzipped_and_chunked_request_bodies(self, root, commit, tmp_path):
        """A push larger than http.postBuffer is chunked; a fetch with many haves is gzipped."""
        git("config", "http.receivepack", "true", cwd=root / "acme/site.git")
        with double(root) as github:
            work = tmp_path / "c"
            assert clone(github, work, STATIC).returncode == 0
            env = bound_helper(github.url, STATIC)
            for number in range(60):
                git("commit", "-q", "--allow-empty", "-m", str(number), cwd=work)
            (work / "new.bin").write_bytes(bytes(range(255)) * 9001)
            git("add", "-A", cwd=work)
            git("commit", "-qm", "big", cwd=work)
            make_repository(root, "acme/far")
            git("fetch", "-q", str(root / "acme/far.git"), "main:refs/remotes/far", cwd=work)
            git("-c", "http.postBuffer=1024", "push", "-q", "origin", "main", cwd=work, env=env)
            head = git("rev-parse", "HEAD", cwd=work).stdout
            assert git("rev-parse", "main", cwd=root / "acme/site.git").stdout == head
            make = tmp_path / "again"
            git("clone", "-q", str(root / "acme/site.git"), str(make))
            git("commit", "-q", "--allow-empty", "-m", "there", cwd=make)
            git("push", "-q", "origin", "main", cwd=make)
            git("fetch", "-q", "origin", cwd=work, env=env)
            there = git("rev-parse", "HEAD", cwd=make).stdout
            assert git("rev-parse", "origin/main", cwd=work).stdout == there


class TestTheft:
    """Facts B1: with a helper bound to scheme and host, nothing of the token reaches another host."""

    def test_redirect_to_another_host(self, root, commit, tmp_path):
        with double(root) as github, Thief() as thief:
            github.fault(faults.redirect(thief.url), path="info/refs")
            assert clone(github, tmp_path / "c", STATIC).returncode == 128
            assert len(thief.offers) == 1
            assert thief.loot == []

    def test_a_thief_catches_an_unbound_helper(self, root, commit, tmp_path):
        """The control: the thief does take what a careless client offers."""
        with double(root) as github, Thief() as thief:
            github.fault(faults.redirect(thief.url), path="info/refs")
            env = bound_helper(github.url, STATIC)
            env["GIT_CONFIG_KEY_1"] = "credential.helper"
            git("clone", "-q", github.git_url("acme", "site"), str(tmp_path / "c"), env=env, check=False)
            assert len(thief.loot) == 1

    def test_submodule_on_another_host(self, root, tmp_path):
        with double(root) as github, Thief() as thief:
            modules = f'[submodule "x"]\n\tpath = x\n\turl = {thief.url}/a/x.git\n'
            sha = make_repository(root, "acme/sub")
            work = tmp_path / "w"
            git("init", "-q", "-b", "main", str(work))
            (work / ".gitmodules").write_text(modules)
            git("add", "-A", cwd=work)
            git("update-index", "--add", "--cacheinfo", f"160000,{sha},x", cwd=work)
            git("commit", "-qm", "s", cwd=work)
            git("clone", "-q", "--bare", str(work), str(root / "acme/site.git"))
            url = github.git_url("acme", "site")
            env = bound_helper(url, STATIC)
            git("clone", "-q", "--recurse-submodules", url, str(tmp_path / "c"), env=env, check=False)
            assert [offer.path for offer in thief.offers][:1] == ["/a/x.git/info/refs?service=git-upload-pack"]
            assert thief.loot == []
            assert github.authorizations() != []

    def test_rename_on_the_same_host_works(self, root, commit, tmp_path):
        with double(root) as github:
            github.fault(faults.redirect(github.url, "acme/old", "acme/site"), path="acme/old", times=None)
            done = clone(github, tmp_path / "c", STATIC, "old")
            assert done.returncode == 0, done.stderr

    @pytest.fixture
    def lfs(self, root, tmp_path):
        """A clone with an LFS pointer, the double and the environment it came with, and a thief."""
        if shutil.which("git-lfs") is None and os.environ.get("CI") != "true":
            pytest.skip("git-lfs is not installed")
        with double(root) as github, Thief() as thief:
            attributes = b"*.bin filter=lfs diff=lfs merge=lfs -text\n"
            pointer = github.add_lfs_object(b"large" * 1000)
            make_repository(root, "acme/site", {"a.bin": pointer, ".gitattributes": attributes})
            assert clone(github, tmp_path / "c", STATIC).returncode == 0
            yield (
                github,
                thief,
                lambda: git(*LFS, "lfs", "pull", cwd=tmp_path / "c", env=bound_helper(github.url, STATIC), check=False),
            )

    def test_lfs_objects_come_from_this_host(self, lfs, tmp_path):
        _, _, pull = lfs
        done = pull()
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "c/a.bin").read_bytes() == b"large" * 1000

    def test_lfs_server_of_the_repository_itself_gets_nothing(self, lfs, tmp_path):
        _, thief, pull = lfs
        (tmp_path / "c/.lfsconfig").write_text(f"[lfs]\n\turl = {thief.url}/lfs\n")
        assert pull().returncode != 0
        assert thief.offers != []
        assert thief.loot == []

    def test_lfs_objects_on_another_host_get_nothing(self, lfs):
        github, thief, pull = lfs
        github.lfs_href_base = thief.url
        assert pull().returncode != 0
        assert {offer.path.split("/")[1] for offer in thief.offers} == {"_lfs"}
        assert thief.loot == []


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ((faults.status(503, b""), {"path": "info/refs"}), "returned error: 503"),
        ((faults.status(429, b"", Retry_After="7"), {"path": "info/refs"}), "returned error: 429"),
        ((faults.status(404), {"path": "info/refs"}), "not found"),
        ((faults.status(403), {"path": "info/refs", "when": "credential"}), "returned error: 403"),
        ((faults.reset(), {"path": "info/refs"}), "reset by peer"),
        ((faults.close_before(), {"path": "info/refs"}), "Empty reply from server"),
        # curl repeats a request by itself when a kept connection turns out to be dead: so two replies are lost
        ((faults.lose_reply(), {"path": "git-upload-pack", "method": "POST", "times": 2}), "Empty reply from server"),
        ((faults.cut_body(20_000), {"path": "git-upload-pack", "method": "POST", "skip": 1}), "early EOF"),
        ((faults.garbage(), {"path": "info/refs"}), "fatal:"),
    ],
    ids=["503", "429", "404-empty", "403", "rst", "close", "lost", "cut", "garbage"],
)
def test_fault_spoils_one_clone_and_the_next_succeeds(root, commit, tmp_path, fault, text):
    act, match = fault
    with double(root) as github:
        rule = github.fault(act, **match)
        done = clone(github, tmp_path / "c", STATIC)
        assert done.returncode == 128
        assert text in done.stderr
        assert rule.seen >= 1
        assert clone(github, tmp_path / "d", STATIC).returncode == 0


@pytest.mark.parametrize("code", [401, 403, 404])
def test_rejection_right_after_a_mint(root, commit, tmp_path, code):
    with double(root) as github:
        token = app(github).mint("acme", "site", timeout=10).token.reveal()
        github.reject_after_mint(code)
        assert clone(github, tmp_path / "c", token).returncode == 128
        assert clone(github, tmp_path / "d", token).returncode == 0
        assert github.counts["mints"] == 1


def test_stall_ends_with_the_clients_patience(root, commit, tmp_path):
    with double(root) as github:
        github.fault(faults.stall_body(1000), path="git-upload-pack", method="POST", skip=1)
        env = bound_helper(github.url, STATIC) | {"GIT_HTTP_LOW_SPEED_LIMIT": "1000", "GIT_HTTP_LOW_SPEED_TIME": "1"}
        done = git("clone", "-q", github.git_url("acme", "site"), str(tmp_path / "c"), env=env, check=False)
        assert done.returncode == 128
        assert "Operation too slow" in done.stderr


def test_delay_and_close_after_reply_do_no_harm(root, commit, tmp_path):
    with double(root) as github:
        late = github.fault(faults.delay(0.2), path="info/refs")
        closing = github.fault(faults.close_after(), path="info/refs")
        start = time.monotonic()
        assert clone(github, tmp_path / "c", STATIC).returncode == 0
        assert time.monotonic() - start >= 0.2
        assert late.seen >= 1
        assert closing.seen >= 1
