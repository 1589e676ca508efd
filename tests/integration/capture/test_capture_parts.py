"""Repositories in repositories: each is a part of its own, none is touched, none is lost."""

import shutil

from tests.doubles.repositories import git


def submodule(bench):
    """The workspace has a checked-out submodule ``lib``."""
    inner = bench.tmp / "inner"
    git("init", "-q", "-b", "main", str(inner))
    (inner / "s").write_text("s\n")
    bench.commit("inner", at=inner)
    bench.cloned()
    git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner.as_uri(), "lib", cwd=bench.path)
    bench.commit("submodule")
    git("push", "-q", str(bench.host), "main", cwd=bench.path)
    bench.take_baseline()
    return bench


def gitlink(bench):
    return ("160000", bench.git("rev-parse", "HEAD", at="lib").encode())


def test_a_nested_repository_with_a_commit(bench):
    bench.cloned()
    bench.write("tool/main.c", "body")
    bench.git("init", "-q", "-b", "main", at="tool")
    bench.commit("inner", at="tool")
    bench.write("tool/more", "uncommitted")
    bench.write("tool/deep/x", "x")
    bench.git("init", "-q", "-b", "main", at="tool/deep")
    bench.write("good", "g")
    result = bench.capture()
    assert [(p.kind, p.base, p.baseline) for p in result.text.parts[1:]] == [("nested", None, None)] * 2
    assert result.paths == [b"", b"tool", b"tool/deep"]
    assert result.changes() == {"good": "A"}
    tool, deep = result.at("tool"), result.at("tool/deep")
    assert result.files(tool) == {"main.c": b"body", "more": b"uncommitted"}
    assert result.log("head", tool) == ["inner"]
    assert result.files(deep) == {"x": b"x"}
    assert result.omitted == (("unborn_nested", b"tool/deep/."),)


def test_a_nested_repository_without_a_commit_stops_nothing(bench):
    bench.cloned()
    bench.write("inner/y", "x")
    bench.git("init", "-q", at="inner")
    bench.write("good.txt", "good")
    result = bench.capture()
    assert result.changes() == {"good.txt": "A"}
    assert (result.files(1), result.text.parts[1].head) == ({"y": b"x"}, None)
    assert result.text.omitted == {"unborn_nested": 1}


def test_names_of_nested_repositories_and_what_is_in_them(bench):
    bench.cloned()
    for name in ("nl\nx", "-rf", "a\\b", "end\n"):
        bench.write(f"{name}/{name}", name)
        bench.git("init", "-q", at=name)
        (bench.path / name / "empty").mkdir()
    result = bench.capture()
    for name in ("nl\nx", "-rf", "a\\b", "end\n"):
        assert result.files(result.at(name)) == {name: name.encode()}
        assert f"{name}/empty".encode() in result.empty
    assert result.changes() == {}


def test_ignored_nested_repositories_are_not_taken(bench):
    bench.cloned({"f": "1", ".gitignore": "vendor/\n"})
    bench.write("vendor/x/y", "1")
    bench.git("init", "-q", at="vendor/x")
    result = bench.capture()
    assert (len(result.text.parts), result.text.ignored) == (1, 1)


def test_ignored_nested_repositories_that_the_request_wants_are_taken(bench):
    bench.cloned({"f": "1", ".gitignore": "vendor/\n"})
    bench.write("vendor/plain", "p")
    for name in ("x", "y"):
        bench.write(f"vendor/{name}/file", name)
        bench.git("init", "-q", at=f"vendor/{name}")
    result = bench.capture(include=("vendor/",), exclude=("vendor/y",))
    assert result.paths == [b"", b"vendor/x"]
    assert result.files(1) == {"file": b"x"}
    assert result.changes() == {"vendor/plain": "A"}


def test_excluded_nested_repositories_are_left_out(bench):
    submodule(bench)
    bench.write("lib/s", "dirty")
    for name in ("third_party/a", "b", "kept"):
        bench.write(f"{name}/file", name)
        bench.git("init", "-q", at=name)
    result = bench.capture(exclude=("third_party/", "b", "lib"))
    assert result.paths == [b"", b"kept"]
    assert {name for kind, name in result.omitted if kind == "excluded"} == {b"third_party/a/", b"b/"}


def test_a_repository_made_around_tracked_files(bench):
    bench.cloned()
    bench.git("init", "-q", "-b", "main", at="d")
    bench.write("d/g", "edited")
    bench.write("d/new", "n")
    bench.commit("inner", at="d")
    result = bench.capture()
    assert result.changes() == {"d/g": "M", "d/new": "A"}
    assert result.files(result.at("d")) == {"g": b"edited", "h": b"three\n", "new": b"n"}


def test_a_nested_clone_does_not_carry_its_remote_again(bench):
    bench.cloned()
    elsewhere = bench.tmp / "elsewhere"
    git("init", "-q", "-b", "main", str(elsewhere))
    (elsewhere / "s").write_text("s\n")
    bench.commit("upstream", at=elsewhere)
    git("clone", "-q", elsewhere.as_uri(), str(bench.path / "dep"))
    bench.write("dep/s", "edited\n")
    result = bench.capture()
    assert (result.files(1), result.refs[1].keys()) == ({"s": b"edited\n"}, {"snapshot"})
    assert result.log("snapshot", 1) == ["Sandferry snapshot"]
    bench.commit("agent", at="dep")
    result = bench.capture()
    assert result.log("head", 1) == ["agent", "upstream"]


def test_a_shallow_nested_clone_with_commits_names_the_history_it_leaves(bench):
    bench.cloned()
    elsewhere = bench.tmp / "elsewhere"
    git("init", "-q", "-b", "main", str(elsewhere))
    for n in "ab":
        (elsewhere / "s").write_text(n)
        bench.commit(n, at=elsewhere)
    git("clone", "-q", "--depth=1", elsewhere.as_uri(), str(bench.path / "dep"))
    bench.write("dep/s", "edited\n")
    bench.commit("agent", at="dep")
    result = bench.capture()
    assert result.files(1) == {"s": b"edited\n"}
    assert result.omitted == (("history", b"dep/."),)


def test_a_clean_submodule_is_its_gitlink(bench):
    submodule(bench)
    result = bench.capture()
    assert result.changes() == {}
    assert len(result.text.parts) == 1
    assert result.files()["lib"] == gitlink(bench)


def test_a_dirty_submodule_is_a_part_and_nothing_runs_in_it(bench):
    submodule(bench)
    marker = bench.tmp / "ran"
    hook = bench.path / ".git/modules/lib/hooks/fsmonitor"
    hook.write_text(f"#!/bin/sh\ntouch {marker}\n")
    hook.chmod(0o755)
    bench.git("config", "core.fsmonitor", str(hook), at="lib")
    bench.write("lib/s", "dirty\n")
    bench.write("lib/new", "n")
    result = bench.capture()
    assert result.changes() == {}
    assert (result.text.parts[1].kind, result.paths[1]) == ("submodule", b"lib")
    assert result.files(1) == {"s": b"dirty\n", "new": b"n"}
    assert not marker.exists()
    bench.git("config", "--unset", "core.fsmonitor", at="lib")
    bench.commit("agent", at="lib")
    result = bench.capture()
    assert result.changes() == {"lib": "M"}
    assert result.files()["lib"] == gitlink(bench)
    assert result.log("head", 1) == ["agent", "inner"]


def test_a_submodule_that_is_not_there_is_not_removed(bench):
    submodule(bench)
    link = gitlink(bench)
    bench.git("submodule", "--quiet", "deinit", "-f", "lib")
    bench.write("other", "x")
    result = bench.capture()
    assert (result.changes(), result.files()["lib"]) == ({"other": "A"}, link)
    assert result.text.omitted == {"absent_submodule": 1}
    (bench.path / "lib").rmdir()
    result = bench.capture()
    assert (result.changes(), result.files()["lib"]) == ({"other": "A"}, link)


def test_a_submodule_that_became_files_or_a_file(bench):
    submodule(bench)
    (bench.path / "lib/.git").unlink()
    bench.write("lib/new", "n")
    assert bench.capture().changes() == {"lib": "D", "lib/s": "A", "lib/new": "A"}
    for name in ("s", "new"):
        (bench.path / "lib" / name).unlink()
    (bench.path / "lib").rmdir()
    bench.write("lib", "a file")
    result = bench.capture()
    assert (result.changes(), result.files()["lib"]) == ({"lib": "T"}, b"a file")


def test_a_nested_repository_that_git_does_not_open_is_a_part_all_the_same(bench):
    bench.cloned()
    bench.write("inner/y", "x")
    bench.git("init", "-q", "-b", "main", at="inner")
    tip = bench.commit("inner", at="inner")
    (bench.path / "inner/.git/config").write_text("[[[")
    bench.write("inner/z", "not committed")
    result = bench.capture()
    assert result.files(result.at("inner")) == {"y": b"x", "z": b"not committed"}
    assert result.refs[1]["heads/main"] == tip
    assert result.omitted == (("broken_repository", b"inner/.git"),)
    (bench.path / "inner/.git/HEAD").write_text("garbage")
    result = bench.capture()
    assert result.changes() == {"inner/y": "A", "inner/z": "A"}
    assert (len(result.text.parts), result.omitted) == (1, (("broken_repository", b"inner/.git"),))


def test_a_nested_repository_whose_name_looks_like_a_pathspec_is_not_taken_for_an_ignored_file(bench):
    bench.cloned({".gitignore": "x\n"})
    for name in (":x", ":!x", ":(top)x"):
        bench.write(f"{name}/y", name)
        bench.git("init", "-q", at=name)
    result = bench.capture()
    assert {name: result.files(result.at(name)) for name in (":x", ":!x", ":(top)x")} == {
        name: {"y": name.encode()} for name in (":x", ":!x", ":(top)x")
    }


def test_a_submodule_that_a_link_took_the_place_of(bench):
    submodule(bench)
    (bench.path / "lib").rename(bench.path / "moved")
    (bench.path / "lib").symlink_to("moved")
    result = bench.capture()
    assert result.changes() == {"lib": "T"}
    assert result.files()["lib"] == ("120000", b"moved")
    assert result.paths == [b"", b"moved"]


def test_a_submodule_behind_a_link(bench):
    submodule(bench)
    (bench.path / "v").mkdir()
    bench.git("mv", "lib", "v/lib")
    bench.commit("moved")
    (bench.path / "v").rename(bench.path / "v2")
    (bench.path / "v").symlink_to("v2")
    result = bench.capture()
    assert result.files()["v"] == ("120000", b"v2")
    assert "v/lib" not in result.files()
    assert result.paths == [b"", b"v2/lib"]


def test_a_submodule_that_became_a_repository_of_the_other_object_format(bench):
    submodule(bench)
    link = gitlink(bench)
    shutil.rmtree(bench.path / "lib")
    bench.write("lib/s", "new")
    bench.git("init", "-q", "--object-format=sha256", at="lib")
    bench.commit("begun again", at="lib")
    bench.write("other", "x")
    result = bench.capture()
    assert (result.changes(), result.files()["lib"]) == ({"other": "A"}, link)
    assert (result.text.parts[1].format, result.files(1)) == ("sha256", {"s": b"new"})
