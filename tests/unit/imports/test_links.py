import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.imports.links import safe_link


@pytest.mark.parametrize(
    ("target", "depth", "safe"),
    [
        (b"a", 0, True),
        (b"a/b/c", 0, True),
        (b"./a", 0, True),
        (b"../a", 1, True),
        (b"../../pkg/bin/x", 2, True),
        (b"./../a", 1, True),
        (b"..", 1, True),
        (b".", 0, True),
        (b"..", 0, False),
        (b"../../a", 1, False),
        (b"/etc/passwd", 5, False),
        (b"//x", 5, False),
        (b"a/..", 5, False),
        (b"../a/../b", 5, False),
        (b"", 5, False),
        (b"a\0b", 5, False),
        (b"x" * 4097, 5, False),
        (b".git", 0, False),
        (b".GIT/hooks", 0, False),
        (b"../.git/config", 1, False),
        (b"git~1/config", 0, False),
        (b".git ./x", 0, False),
        (b".git::$INDEX_ALLOCATION", 0, False),
        (".g\u200cit/x".encode(), 0, False),
        (b".gitignore", 0, True),
        (b".github/x", 0, True),
        (b"a.git", 0, True),
        (b"\xff\xfe", 0, True),
    ],
)
def test_targets(target: bytes, depth: int, safe: bool) -> None:
    assert safe_link(target, depth) is safe


_PARTS = st.lists(st.sampled_from(["..", ".", "a", "b", "l"]), min_size=1, max_size=5)


@given(st.lists(_PARTS, min_size=2, max_size=2))
def test_safe_links_stay_inside_whatever_other_safe_links_do(tmp_path_factory, targets: list[list[str]]) -> None:
    """Links ``a`` in the root and ``b/l`` below it: following either never leaves the root."""
    root = Path(tmp_path_factory.mktemp("root")) / "r"
    (root / "b").mkdir(parents=True)
    for name, depth, target in (("a", 0, "/".join(targets[0])), ("b/l", 1, "/".join(targets[1]))):
        if safe_link(target.encode(), depth):
            (root / name).symlink_to(target)
    for name in ("a", "b/l"):
        end = os.path.realpath(root / name)
        assert end == str(root) or end.startswith(f"{root}/")
