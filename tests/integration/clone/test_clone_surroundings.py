"""What the sandbox's home and environment would say to git, to curl and to the script is not heard."""

import base64
import shutil
import stat
from pathlib import Path

import pytest

from tests.doubles.thief import Thief
from tests.integration.clone.bench import TOKEN, local_sandbox
from tests.integration.clone.test_clone_content import LFS_FILES, path_without

PROXIES = [f"{name}_proxy" for name in ("http", "https", "all", "ftp", "socks")]
PROXIES += [name.upper() for name in PROXIES]
HEARD = {"PATH", "LD_LIBRARY_PATH", "TMPDIR", "TZ", "PWD", "LC_ALL", "LANG", "HOME"}
STRANGERS = dict.fromkeys(
    [
        *("XDG_CONFIG_HOME", "NETRC", "CURL_HOME", "SSLKEYLOGFILE", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "OPENSSL_CONF"),
        *("ENV", "BASH_ENV", "SSH_AUTH_SOCK", "CDPATH", "IFS", "LD_PRELOAD", "GIT_EXEC_PATH", "GIT_SSL_NO_VERIFY"),
        *("GIT_PROXY_COMMAND", "GIT_ALLOW_PROTOCOL", "GIT_LFS_PROGRESS", "GIT_DIR", "GIT_OBJECT_DIRECTORY"),
        *("kind", "url", "staging", "needle", "made", "attempt", "variable", "no_proxy", "NO_PROXY", *PROXIES),
    ],
    "/stranger",
)
"""What git, curl, git-lfs, ssh, OpenSSL or a shell heeds, and names of the script's own."""


@pytest.mark.parametrize("lfs", [False, True])
def test_a_netrc_in_the_home_is_not_sent(bench, lfs):
    files = LFS_FILES | {"a.bin": bench.hub.add_lfs_object(b"data")}
    commit = bench.repository(files=files)
    for name in (".netrc", "_netrc"):
        (bench.home / name).write_text("machine 127.0.0.1 login evil password evil-credential\n")
        (bench.home / name).chmod(0o600)
    assert bench.clone(lfs=lfs).commit == commit
    assert {offer for offer in bench.hub.authorizations() if offer} == {basic(TOKEN)}


@pytest.mark.parametrize("lfs", [False, True])
def test_no_proxy_of_the_sandbox_is_spoken_to(bench, tmp_path, lfs):
    files = LFS_FILES | {"a.bin": bench.hub.add_lfs_object(b"data")}
    commit = bench.repository(files=files)
    with Thief() as thief:
        bench.sandbox = local_sandbox(tmp_path / "s", dict.fromkeys(PROXIES, thief.url), request="r2")
        assert bench.clone(lfs=lfs).commit == commit
        assert thief.offers == []


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_git_sees_of_the_environment_what_is_listed_and_ours(bench, tmp_path, shell):
    folder, seen = Path(path_without(tmp_path, "git", "sh")), tmp_path / "seen"
    (folder / "sh").symlink_to(shutil.which(shell) or shell)
    (folder / "git").write_text(f'#!/bin/sh\nenv >>{seen}\nexec /usr/bin/git "$@"\n')
    (folder / "git").chmod(stat.S_IRWXU)
    lines = {"MULTIPLE_LINES": "a\nkind=x\nurl=y", "PATH": str(folder), "TZ": "UTC"}
    bench.sandbox = local_sandbox(tmp_path / "s", STRANGERS | lines, request="r2")
    commit = bench.repository()
    assert bench.clone().commit == commit
    assert "/stranger" not in seen.read_text()
    names = {line.partition("=")[0] for line in seen.read_text().split("\n") if "=" in line}
    # The shells set the last ones themselves.
    assert {name for name in names if "GIT_" not in name} <= HEARD | {"SHLVL", "OLDPWD", "_", "SSH_ASKPASS", "f() {"}


def basic(token: str) -> str:
    return "Basic " + base64.b64encode(f"x-access-token:{token}".encode()).decode()
