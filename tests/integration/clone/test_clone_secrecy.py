"""The token reaches the request's host and nobody else, and stays nowhere."""

import base64
import threading
from pathlib import Path

import pytest

from tasks.clone.git import GitCredential
from tasks.clone.steps import clone
from tests.doubles.github import status
from tests.doubles.repositories import git
from tests.doubles.thief import Thief
from tests.integration.clone.bench import TOKEN, local_sandbox
from worker.demo.github_double import Grant
from worker.failures.classify import classify
from worker.failures.model import Category, Credential, OperationFailed
from worker.sandboxes.deadline import Deadline
from worker.secrets.secret import Secret

NEEDLES = (TOKEN.encode(), base64.b64encode(f"x-access-token:{TOKEN}".encode()))


@pytest.fixture
def thief():
    with Thief() as thief:
        yield thief


def files_with_the_token(root: Path) -> list[Path]:
    files = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    return [path for path in files if any(needle in path.read_bytes() for needle in NEEDLES)]


def argvs_with_the_token(stop: threading.Event, found: list[bytes]) -> None:
    while not stop.is_set():
        for process in Path("/proc").glob("[0-9]*"):
            try:
                argv = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if any(needle in argv for needle in NEEDLES):
                found.append(argv)


def test_the_token_is_in_no_file_and_no_argv(bench):
    bench.repository(files={f"f{n}": b"x" * n for n in range(200)})
    stop, found = threading.Event(), []
    watcher = threading.Thread(target=argvs_with_the_token, args=(stop, found))
    watcher.start()
    try:
        done = bench.clone()
    finally:
        stop.set()
        watcher.join()
    assert bench.hub.authorizations() != []
    assert found == []
    assert files_with_the_token(bench.root) == []
    assert bench.git("remote", "get-url", "origin", at=done.path) == bench.hub.git_url("o", "r")
    config = bench.git("config", "--local", "--list", at=done.path)
    assert "credential" not in config
    assert "@" not in config


def test_a_submodule_elsewhere_gets_no_credential(bench, thief):
    module = f'[submodule "m"]\n\tpath = m\n\turl = {thief.url}/o/m.git\n'
    bench.repository(files={".gitmodules": module.encode(), "f": b"1"})
    add_gitlink(bench, "m")
    failure = bench.failure(submodules=True)
    assert (failure.stage, failure.exit_code) == ("submodules", 1)
    assert [offer.path for offer in thief.offers] != []
    assert thief.loot == []


def test_a_submodule_on_the_same_host_is_cloned_with_it(bench):
    inner = bench.repository("o/m")
    module = b'[submodule "m"]\n\tpath = m\n\turl = ../m.git\n'
    bench.repository(files={".gitmodules": module})
    add_gitlink(bench, "m", inner)
    grant = bench.hub.grants[TOKEN]
    bench.hub.public.add("o/m")
    assert grant.repository == "o/r"
    done = bench.clone(submodules=True)
    assert (Path(done.path) / "m/README.md").read_bytes() == b"hello\n"
    assert bench.git("status", "--porcelain", at=done.path) == ""
    assert bench.git("rev-parse", "HEAD^{tree}", at=done.path) == done.baseline


@pytest.mark.parametrize(
    ("userinfo", "persisted"),
    [
        *(("git@", False), ("some.user-1@", False), ("user:@", False)),
        *(("user:password@", True), (":password@", True), ("ghs_abc:@", True), ("ghp_abc@", True)),
        *(("glpat-abc@", True), ("github_pat_abc@", True)),
    ],
)
def test_a_submodule_url_with_a_name_is_no_credential_and_with_a_password_it_is(bench, userinfo, persisted):
    inner = bench.repository("o/m")
    bench.hub.public.add("o/m")
    url = bench.hub.git_url("o", "m").replace("://", f"://{userinfo}")
    bench.repository(files={".gitmodules": f'[submodule "m"]\n\tpath = m\n\turl = {url}\n'.encode()})
    add_gitlink(bench, "m", inner)
    bench.hub.grants[userinfo.rpartition(":")[2].removesuffix("@")] = Grant(repository="o/m")
    if persisted:
        failure = bench.failure(submodules=True)
        assert (failure.category, failure.reason) == (Category.POLICY_DENIED, "credential_persisted")
    else:
        assert Path(bench.clone(submodules=True).path, "m/README.md").is_file()


def test_our_own_token_as_a_name_is_found_in_a_config_of_any_depth(bench):
    inner = bench.repository("o/m")
    bench.hub.public.add("o/m")
    url = bench.hub.git_url("o", "m").replace("://", "://odd-token-of-no-shape@")
    bench.repository(files={".gitmodules": f'[submodule "m"]\n\tpath = m\n\turl = {url}\n'.encode()})
    add_gitlink(bench, "m", inner)
    bench.hub.grant("odd-token-of-no-shape", "o/r")
    assert bench.failure(submodules=True, token="odd-token-of-no-shape").reason == "credential_persisted"


@pytest.mark.parametrize("value", ["!touch mark", "nonsense", "!"])
def test_a_submodule_that_wants_a_command_is_refused(bench, value):
    module = f'[submodule "m"]\n\tpath = m\n\turl = ../m.git\n\tupdate = "{value}"\n'
    bench.repository(files={".gitmodules": module.encode()})
    add_gitlink(bench, "m")
    failure = bench.failure(submodules=True)
    assert (failure.stage, failure.category) == ("submodules", Category.INVALID_REQUEST)
    assert failure.reason == "submodule_invalid"


@pytest.mark.parametrize("when", ["anonymous", "credential"])
def test_a_redirect_elsewhere_gets_no_credential(bench, thief, when):
    bench.repository()
    bench.hub.fault(
        status(302, Location=f"{thief.url}/o/r.git/info/refs?service=git-upload-pack"), when=when, times=None
    )
    failure = bench.failure()
    assert failure.stage == "clone"
    assert thief.offers != []
    assert thief.loot == []


def test_who_asks_for_a_credential_elsewhere_is_no_lag_of_a_fresh_token(bench, thief):
    bench.repository()
    bench.hub.fault(status(302, Location=f"{thief.url}/o/r.git/info/refs?service=git-upload-pack"), times=None)
    fresh = GitCredential(username="x-access-token", token=Secret(TOKEN), source=Credential.MINTED, age=1)
    with pytest.raises(OperationFailed) as caught:
        clone(bench.sandbox, bench.job(), fresh, Deadline.after(60), lambda *_: None)
    judged = classify(caught.value.failure)
    assert (judged.category, judged.reason) == (Category.AUTH_DENIED, "credential_missing")
    assert thief.loot == []


def test_a_rename_redirect_on_the_same_host_works(bench):
    commit = bench.repository("o/renamed")
    url = bench.hub.git_url("o", "renamed")
    bench.hub.fault(
        status(301, Location=f"{url}/info/refs?service=git-upload-pack"), path="^/o/before.git/info/refs", times=None
    )
    assert bench.clone("o/before").commit == commit


def test_insteadof_of_the_sandbox_is_not_read(bench, thief):
    commit = bench.repository()
    home = bench.home
    (home / ".gitconfig").write_text(f'[url "{thief.url}/"]\n\tinsteadOf = {bench.hub.url}/\n')
    assert bench.clone().commit == commit
    assert thief.offers == []


def test_an_lfs_endpoint_elsewhere_gets_no_credential(bench, thief):
    pointer = bench.hub.add_lfs_object(b"large\n" * 100)
    bench.repository(
        files={
            ".gitattributes": b"*.bin filter=lfs diff=lfs merge=lfs -text\n",
            ".lfsconfig": f"[lfs]\n\turl = {thief.url}/lfs\n".encode(),
            "a.bin": pointer,
        }
    )
    failure = bench.failure(lfs=True)
    assert (failure.stage, failure.program) == ("lfs", "git_lfs")
    assert thief.offers != []
    assert thief.loot == []


@pytest.mark.parametrize(
    "url", ["ext::sh -c 'touch {mark}'", "file://{mark}", "ssh://-oProxyCommand=touch${{IFS}}{mark}/x"]
)
def test_a_submodule_cannot_choose_a_transport(bench, tmp_path, url):
    mark = tmp_path / "mark"
    module = f'[submodule "m"]\n\tpath = m\n\turl = "{url.format(mark=mark)}"\n'
    bench.repository(files={".gitmodules": module.encode()})
    add_gitlink(bench, "m")
    assert bench.failure(submodules=True).stage == "submodules"
    assert not mark.exists()


@pytest.mark.parametrize("variable", ["GIT_TRACE", "GIT_TRACE_CURL", "GIT_CURL_VERBOSE", "GIT_TRACE_PACKET"])
def test_a_trace_of_the_sandbox_prints_nothing(bench, tmp_path, variable):
    bench.sandbox = local_sandbox(tmp_path / "traced", {variable: "1", "GIT_TRACE_REDACT": "0"}, request="r2")
    bench.repository()
    failure = bench.failure(ref={"branch": "nowhere"})
    assert "Remote branch nowhere not found" in failure.text
    assert "trace" not in failure.text.lower()
    assert TOKEN not in failure.text
    assert "Authorization" not in failure.text


def test_a_config_in_the_environment_of_the_sandbox_is_not_read(bench, tmp_path, thief):
    commit = bench.repository()
    parameters = f"'url.{thief.url}/.insteadof={bench.hub.url}/'"
    bench.sandbox = local_sandbox(tmp_path / "configured", {"GIT_CONFIG_PARAMETERS": parameters}, request="r2")
    assert bench.clone().commit == commit
    assert thief.offers == []


def test_no_hook_of_a_template_runs(bench, tmp_path):
    mark = tmp_path / "mark"
    hooks = tmp_path / "template/hooks"
    hooks.mkdir(parents=True)
    (hooks / "post-checkout").write_text(f"#!/bin/sh\ntouch {mark}\n")
    (hooks / "post-checkout").chmod(0o755)
    bench.sandbox = local_sandbox(tmp_path / "s", {"GIT_TEMPLATE_DIR": str(tmp_path / "template")}, request="r2")
    bench.repository()
    bench.clone()
    assert not mark.exists()


def test_a_rejected_token_is_a_fact_with_its_source(bench):
    bench.repository()
    failure = bench.failure(token="ghs_" + "wrong" * 8)
    assert failure.credential is Credential.STATIC
    assert "not found" in failure.text
    assert "wrongwrong" not in failure.text
    assert "wrongwrong" not in repr(failure)


def add_gitlink(bench, path: str, commit: str = "1" * 40) -> None:
    work = bench.work()
    git("update-index", "--add", "--cacheinfo", f"160000,{commit},{path}", cwd=work)
    git("commit", "-qm", "submodule", cwd=work)
    bench.push("main")
