"""The environment of git: closed to the sandbox's own settings, and a helper bound to one host."""

import os
import subprocess

import pytest

from tasks.clone.git import TOKEN, USERNAME, GitCredential, Network, environment
from tasks.clone.repository import parse_url
from worker.secrets.secret import Secret

VALUE = "ghs_canary"
REPOSITORY = parse_url("https://git.example:8443/o/r")


def built(credential: bool = True, network: Network | None = None, trusted: tuple[str, ...] = ()) -> dict[str, str]:
    given = GitCredential(username="x-access-token", token=Secret(VALUE)) if credential else None
    return environment(REPOSITORY, given, network=network or Network(), trusted=trusted)


def config(env: dict[str, str]) -> list[tuple[str, str]]:
    count = int(env["GIT_CONFIG_COUNT"])
    return [(env[f"GIT_CONFIG_KEY_{n}"], env[f"GIT_CONFIG_VALUE_{n}"]) for n in range(count)]


def test_the_token_is_one_variable_and_nothing_else():
    env = built()
    assert [name for name, value in env.items() if VALUE in value] == [TOKEN]
    assert env[USERNAME] == "x-access-token"


def test_without_a_credential_there_is_no_helper():
    env = built(credential=False)
    assert TOKEN not in env
    assert USERNAME not in env
    assert [pair for pair in config(env) if pair[0].startswith("credential.")] == [("credential.helper", "")]


def test_only_the_named_directories_are_trusted():
    pairs = config(built(trusted=("/repos/o/r", "/repos/o/s")))
    assert [value for key, value in pairs if key == "safe.directory"] == ["/repos/o/r", "/repos/o/s"]


def test_proxy_and_ca_come_from_the_operator():
    assert not {"http.proxy", "http.sslCAInfo"} & dict(config(built())).keys()
    pairs = dict(config(built(network=Network(proxy="http://proxy:3128", ca_file="/etc/ca.pem"))))
    assert (pairs["http.proxy"], pairs["http.sslCAInfo"]) == ("http://proxy:3128", "/etc/ca.pem")


@pytest.mark.parametrize(
    ("url", "given"),
    [
        ("https://git.example:8443/o/r", True),
        ("https://git.example:8443/o/other", True),
        ("https://GIT.example:8443/o/r", True),
        ("http://git.example:8443/o/r", False),
        ("https://git.example/o/r", False),
        ("https://git.example:8444/o/r", False),
        ("https://evil.git.example:8443/o/r", False),
        ("https://git.example.evil:8443/o/r", False),
        ("https://evil/git.example:8443/o/r", False),
    ],
)
def test_git_asks_the_helper_for_this_origin_only(tmp_path, url, given):
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    done = subprocess.run(
        ["git", "credential", "fill"],
        input=f"protocol={scheme}\nhost={host}\npath={path}\n\n",
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **built()},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (f"password={VALUE}\n" in done.stdout) is given
    assert (done.returncode == 0) is given


@pytest.mark.parametrize("scheme", ["ssh", "git", "file", "ext", "ftp", "http"])
def test_other_transports_are_closed(scheme):
    pairs = dict(config(built()))
    assert pairs["protocol.allow"] == "never"
    assert f"protocol.{scheme}.allow" not in pairs
