"""Symbolic links that lead out of the work tree stay behind, named; everything else goes on its way."""

import pytest

from worker.imports.links import safe_link

TARGETS = [
    "a", "./a", "a/b", "../a", "../../a", "../../../a", "..", ".", "/etc/passwd", "//x", "a/..", "../a/../b", ".git",
    ".GIT/hooks", "../.git/config", "git~1/config", ".git ./x", ".git::$INDEX_ALLOCATION", ".git.x/y", ".gitignore",
    ".github/x", "a.git", "with\nline", "back\\slash/..", "-n", "a//./b/", "x" * 200 + "/y",
]  # fmt: skip


def test_the_sandbox_and_the_worker_mean_the_same_links(bench):
    bench.cloned()
    unsafe = set()
    for depth, folder in enumerate(("", "d/", "d/e/")):
        (bench.path / folder).mkdir(parents=True, exist_ok=True)
        for number, target in enumerate(TARGETS):
            name = f"{folder}l {number}"
            (bench.path / name).symlink_to(target)
            if not safe_link(target.encode(), depth):
                unsafe.add(("unsafe_link", name.encode()))
    taken = bench.capture()
    assert set(taken.omitted) == unsafe
    assert taken.text.omitted["unsafe_link"] == len(unsafe) == len(taken.omitted)
    assert len(taken.changes()) == 3 * len(TARGETS) - len(unsafe)


def test_what_was_there_before_stays_as_it_was(bench):
    bench.cloned({"gen/a": "1", "gen/b": "2", "g": "3", "keep": "4"})
    (bench.path / "old").symlink_to("/usr/lib")
    bench.commit("a link of the origin")
    bench.git("push", "-q", "origin", "HEAD:refs/heads/next")
    bench.git("fetch", "-q", str(bench.path), "HEAD:refs/heads/next", at=bench.host)
    bench.take_baseline()

    for name in ("gen/a", "gen/b", "g"):
        (bench.path / name).unlink()
    (bench.path / "gen").rmdir()
    (bench.path / "gen").symlink_to("/srv/outside")
    (bench.path / "g").symlink_to("../up")
    (bench.path / "in").symlink_to("keep")
    bench.write("new", "5")
    taken = bench.capture()
    assert taken.changes() == {"in": "A", "new": "A"}
    assert set(taken.omitted) == {("unsafe_link", b"gen"), ("unsafe_link", b"g")}
    assert taken.files()["old"] == ("120000", b"/usr/lib")


def test_they_are_taken_if_that_is_wanted(dash):
    dash.cloned()
    (dash.path / "out").symlink_to("/etc")
    taken = dash.capture(leave_links=False)
    assert taken.changes() == {"out": "A"}
    assert taken.omitted == ()


@pytest.mark.parametrize("where", [".", "inner"])
def test_outside_a_clone(bench, where):
    """A directory that is no repository has no base; a nested repository has none here either."""
    bench.plain() if where == "." else bench.cloned()
    root = bench.path / where
    root.mkdir(exist_ok=True)
    if where == "inner":
        bench.git("init", "-q", "-b", "main", at=where)
    (root / "venv/bin").mkdir(parents=True)
    (root / "venv/bin/python").symlink_to("/usr/bin/python3")
    (root / "venv/bin/python3").symlink_to("python")
    (root / "f").write_text("1")
    taken = bench.capture()
    number = taken.at("" if where == "." else where)
    assert taken.files(number) == {"f": b"1", "venv/bin/python3": ("120000", b"python")}
    prefix = b"" if where == "." else b"inner/"
    assert [name for kind, name in taken.omitted if kind == "unsafe_link"] == [prefix + b"venv/bin/python"]
