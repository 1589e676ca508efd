"""Which URLs are taken, and what they become."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from tasks.clone.layout import attempt_key, places
from tasks.clone.repository import parse_url, safe_component
from worker.failures.model import OperationFailed
from worker.sandboxes.base import Layout


@pytest.mark.parametrize(
    ("url", "fetched", "path", "origin"),
    [
        ("https://github.com/o/r", "https://github.com/o/r", "o/r", "https://github.com"),
        ("https://github.com/o/r.git", "https://github.com/o/r.git", "o/r", "https://github.com"),
        ("https://github.com/o/r/", "https://github.com/o/r", "o/r", "https://github.com"),
        ("HTTPS://GitHub.com:443/O/R", "https://github.com/O/R", "O/R", "https://github.com"),
        ("https://git.example:8443/o/r", "https://git.example:8443/o/r", "o/r", "https://git.example:8443"),
        ("https://gitlab.com/a/b/c/r.git", "https://gitlab.com/a/b/c/r.git", "a/b/c/r", "https://gitlab.com"),
        ("https://10.0.0.1/o/.github", "https://10.0.0.1/o/.github", "o/.github", "https://10.0.0.1"),
        ("https://github.com/o/r.git.git", "https://github.com/o/r.git.git", "o/r.git", "https://github.com"),
        ("https://github.com/_o_/a.b-c_d", "https://github.com/_o_/a.b-c_d", "_o_/a.b-c_d", "https://github.com"),
    ],
)
def test_good_urls(url, fetched, path, origin):
    repository = parse_url(url)
    assert (repository.url, repository.path, repository.origin) == (fetched, path, origin)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "bad_value"),
        ("github.com/o/r", "bad_value"),
        ("git@github.com:o/r", "bad_value"),
        ("-uhttps://github.com/o/r", "bad_value"),
        ("ssh://github.com/o/r", "url_scheme"),
        ("file:///o/r", "url_scheme"),
        ("ext::sh -c x://o/r", "bad_value"),
        ("http://github.com/o/r", "url_scheme"),
        ("http://allowed.example:81/o/r", "url_scheme"),
        ("https://user@github.com/o/r", "url_userinfo"),
        ("https://user:pass@github.com/o/r", "url_userinfo"),
        ("https://:@github.com/o/r", "url_userinfo"),
        ("https://github.com", "bad_value"),
        ("https:///o/r", "bad_value"),
        ("https://github.com/r", "unsafe_path"),
        ("https://github.com//r", "unsafe_path"),
        ("https://github.com/o//r", "unsafe_path"),
        ("https://github.com/o/r//", "unsafe_path"),
        ("https://github.com/o/..", "unsafe_path"),
        ("https://github.com/../r", "unsafe_path"),
        ("https://github.com/./r", "unsafe_path"),
        ("https://github.com/o/.git", "unsafe_path"),
        ("https://github.com/o/.GIT", "unsafe_path"),
        ("https://github.com/.Git/r", "unsafe_path"),
        ("https://github.com/o/..git", "unsafe_path"),
        ("https://github.com/o/...git", "unsafe_path"),
        ("https://github.com/o/-x", "unsafe_path"),
        ("https://github.com/-o/r", "unsafe_path"),
        ("https://github.com/o/.sandferry-staging-x", "unsafe_path"),
        ("https://github.com/.Sandferry/r", "unsafe_path"),
        ("https://github.com/o/" + "r" * 101, "unsafe_path"),
        ("https://github.com/" + "a/" * 21 + "r", "unsafe_path"),
        ("https://github.com/o/r~1", "unsafe_path"),
        ("https://github.com/o/%2e%2e", "bad_value"),
        ("https://github.com/o/r%00", "bad_value"),
        ("https://github.com/o/r?x=1", "bad_value"),
        ("https://github.com/o/r#x", "bad_value"),
        ("https://github.com/o\\r/x", "bad_value"),
        ("https://github.com/o/r\n", "bad_value"),
        ("https://github.com/o/r\x1b", "bad_value"),
        ("https://github.com/o/ü", "bad_value"),
        (" https://github.com/o/r", "bad_value"),
        ("https://git hub.com/o/r", "bad_value"),
        ("https://-x.com/o/r", "bad_value"),
        ("https://a..b/o/r", "bad_value"),
        ("https://github.com:/o/r", "bad_value"),
        ("https://github.com:0/o/r", "bad_value"),
        ("https://github.com:65536/o/r", "bad_value"),
        ("https://github.com:4x/o/r", "bad_value"),
        ("https://github.com/o/" + "r" * 3000, "bad_value"),
    ],
)
def test_bad_urls(url, reason):
    with pytest.raises(PydanticCustomError) as caught:
        parse_url(url, http_hosts=["allowed.example:80"])
    assert caught.value.type == reason


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("http://h.example/o/r", ["h.example"]),
        ("http://H.example:81/o/r", ["h.EXAMPLE"]),
        ("http://h.example/o/r", ["h.example:80"]),
        ("http://h.example:81/o/r", ["h.example:81"]),
    ],
)
def test_plain_http_where_it_is_allowed(url, allowed):
    assert parse_url(url, http_hosts=allowed).scheme == "http"


@given(st.text(max_size=120))
def test_a_safe_component_stays_where_it_is_put(name):
    if safe_component(name):
        assert name.isascii()
        assert "/" not in name
        assert name not in {"", ".", ".."}
        assert not name.startswith("-")


LAYOUT = Layout(workspace="/workspace", repos="/repos", scratch="/var/lib/s")


def test_places():
    where = places(LAYOUT, parse_url("https://gitlab.com/a/b/r.git"))
    assert (where.checkout, where.link, where.records) == ("/repos/a/b/r", "/workspace/r", "/var/lib/s/clones")
    assert where.staging("k", "n") == ".sandferry-staging-k-n"


@pytest.mark.parametrize("bad", ["repos", "/", "/repos/", "/a/../b", "//repos", "", "/workspace", "/a\nb"])
def test_a_bad_layout_is_the_drivers_fault(bad):
    layout = Layout(workspace="/workspace", repos=bad, scratch="/scratch")
    with pytest.raises(OperationFailed) as caught:
        places(layout, parse_url("https://github.com/o/r"))
    assert caught.value.failure.reason == "layout_invalid"


def test_staging_names_tell_tasks_and_repositories_apart():
    here, there = parse_url("https://github.com/o/r"), parse_url("https://github.com/o/s")
    keys = {
        attempt_key(run_id=run, task_id=task, repository=repository)
        for run in ("r1", "r2")
        for task in ("t1", "t2")
        for repository in (here, there)
    }
    assert len(keys) == 8
