"""Names of branches and tags, against git itself."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.clone.refs import NAME_MAX, valid_name, well_formed


def git_accepts(name: str) -> bool:
    done = subprocess.run(["git", "check-ref-format", f"refs/heads/{name}"], check=False)
    return done.returncode == 0


names = st.text(st.sampled_from("ab./@{}~^:?*[\\- \x01\x7flock\u00fc"), min_size=1, max_size=9) | st.lists(
    st.sampled_from(["a", ".", "..", ".lock", "/", "@", "@{", "-", "b.lock", "//", "HEAD"]), min_size=1, max_size=5
).map("".join)


@settings(max_examples=300, deadline=None)
@given(names)
def test_git_agrees(name):
    assert well_formed(name) is git_accepts(name)


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("main", True),
        ("feature/a-b_c.d", True),
        ("@", True),
        ("ümlaut", True),
        ("a" * NAME_MAX, True),
        ("a" * (NAME_MAX + 1), False),
        ("", False),
        ("-x", False),
        ("--upload-pack=touch mark", False),
        ("a..b", False),
        ("a.lock", False),
        ("a/.b", False),
        ("a b", False),
        ("a\n", False),
        ("refs/heads/main:refs/heads/x", False),
        ("+main", True),
        ("\ud800", False),
    ],
)
def test_names(name, valid):
    assert valid_name(name) is valid
