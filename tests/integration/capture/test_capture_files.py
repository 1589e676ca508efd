"""Files: every change is seen, whatever the repository tells git to think of it."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from tests.doubles.repositories import git

BASE = {"f": b"one\n", "d/g": b"two\n", "d/h": b"three\n"}


def test_nothing_changed_is_equal_trees(bench):
    bench.cloned()
    result = bench.capture()
    part = result.part
    assert (part.kind, part.format, part.state, part.branch) == ("repository", "sha1", "none", True)
    assert part.tree == part.baseline
    assert part.head == part.base == bench.request["base"]
    assert result.changes() == {}
    assert result.refs[0] == {"snapshot": part.snapshot, "head": part.head, "heads/main": part.head}
    assert result.needs[0] == [part.base]
    assert (result.text.omitted, result.text.ignored, result.empty) == ({}, 0, ())
    assert result.bundles[0] < 1000


def test_new_edited_deleted_renamed_and_linked(bench):
    bench.cloned()
    bench.write("f", "edited\n")
    bench.write("new/deep/x", "x")
    (bench.path / "d/g").rename(bench.path / "moved")
    (bench.path / "link").symlink_to("d/nowhere")
    (bench.path / "run").write_text("#!/bin/sh\n")
    (bench.path / "run").chmod(0o755)
    result = bench.capture()
    assert result.changes() == {
        "f": "M", "new/deep/x": "A", "d/g": "D", "moved": "A", "link": "A", "run": "A",
    }  # fmt: skip
    assert result.files() == {
        "f": b"edited\n", "new/deep/x": b"x", "moved": b"two\n", "d/h": b"three\n",
        "link": ("120000", b"d/nowhere"), "run": ("100755", b"#!/bin/sh\n"),
    }  # fmt: skip


NAMES = ["nl\nx", "end\n", "q\"'`$x", "back\\n", "-rf", "--help", ":(top)x", "*", "tab\there", " b/ mid /c ", "grün"]
NAMES += [os.fsdecode(b"\xff\xfe\x80\x81\x82\x88"), "\x01\x7f", "!x", "#x", "a\\", "\\\\", "%s%n", "..."]


def test_any_name_arrives_byte_for_byte(bench):
    bench.cloned({"f": "1", "old\nname": "1", "-old": "1"})
    for name in NAMES:
        bench.write(f"{name}/{name}", name.encode(errors="surrogateescape"))
        (bench.path / f"empty {name}").mkdir(parents=True)
        os.mkfifo(bench.path / f"pipe {name.replace('/', '_')}")
    bench.write("old\nname", "2")
    (bench.path / "-old").unlink()
    result = bench.capture()
    expected = {f"{name}/{name}": name.encode(errors="surrogateescape") for name in NAMES}
    assert result.files() == expected | {"f": b"1", "old\nname": b"2"}
    # a directory in another empty one is the one that is listed
    assert {os.fsdecode(path) for path in result.empty} == {f"empty {name}" for name in NAMES}
    pipes = {os.fsdecode(path) for kind, path in result.omitted if kind == "fifo"}
    assert pipes == {f"pipe {name.replace('/', '_')}" for name in NAMES}


def test_binary_and_large_files(bench):
    bench.cloned()
    blob = os.urandom(3_000_000)
    bench.write("blob", blob)
    bench.write("nul", b"a\0b\r\n")
    bench.write("nothing", b"")
    assert bench.capture().files() == BASE | {"blob": blob, "nul": b"a\0b\r\n", "nothing": b""}


@pytest.mark.parametrize("bit", ["assume-unchanged", "skip-worktree"])
def test_an_edit_behind_a_bit(bench, bit):
    bench.cloned()
    bench.git("update-index", f"--{bit}", "f")
    bench.write("f", "two\n")
    assert bench.capture().changes() == {"f": "M"}
    assert bench.git("ls-files", "-v", "f")[0] in "hS"


def test_skip_worktree_files_that_are_absent_are_not_deleted(bench):
    bench.cloned()
    bench.git("update-index", "--skip-worktree", "f")
    (bench.path / "f").unlink()
    bench.write("new", "n")
    assert bench.capture().changes() == {"new": "A"}


@pytest.mark.parametrize("mode", [["--cone"], ["--no-cone"], ["--cone", "--sparse-index"]])
def test_sparse_checkouts(bench, mode):
    bench.cloned({"f": "1", "a/x": "1", "b/y": "1", "b/z": "1"})
    bench.git("sparse-checkout", "set", *mode, "a" if "--no-cone" not in mode else "/a/")
    bench.write("b/new", "outside the cone")
    bench.write("b/z", "edited outside")
    bench.write("a/x", "2")
    changes = bench.capture().changes()
    assert changes.pop("f", "D") == "D"
    assert changes == {"b/new": "A", "b/z": "M", "a/x": "M"}


def test_an_edit_in_the_clock_tick_of_the_index(bench):
    bench.cloned()
    for _ in range(5):
        bench.write("f", "1111\n")
        bench.git("add", "f")
        bench.write("f", "2222\n")
        assert bench.capture().files()["f"] == b"2222\n"


def test_configuration_filters_and_hooks_are_not_obeyed(bench):
    bench.cloned({"f": "1", "x.dat": "raw\n", ".gitattributes": "*.dat filter=evil\n*.lfs filter=lfs -text\n"})
    marker = bench.tmp / "ran"
    script = f"#!/bin/sh\ntouch {marker}\ncat 2>/dev/null\nexit 0\n"
    for hook in ("post-index-change", "reference-transaction", "pre-commit", "fsmonitor"):
        (bench.path / f".git/hooks/{hook}").write_text(script)
        (bench.path / f".git/hooks/{hook}").chmod(0o755)
    evil = str(bench.path / ".git/hooks/pre-commit")
    for key, value in {
        "core.fsmonitor": str(bench.path / ".git/hooks/fsmonitor"), "core.fileMode": "false",
        "core.autocrlf": "true", "core.safecrlf": "true", "core.worktree": "/", "core.ignoreStat": "true",
        "core.excludesFile": str(bench.tmp / "excludes"), "core.attributesFile": str(bench.tmp / "attributes"),
        "filter.evil.clean": evil, "filter.evil.process": evil, "filter.evil.required": "true",
        "filter.lfs.clean": "git-lfs-is-not-here", "filter.lfs.required": "true",
        "commit.gpgSign": "true", "gpg.program": evil, "core.hooksPath": str(bench.path / ".git/hooks"),
        "diff.external": evil, "log.showSignature": "true", "core.pager": evil, "core.sshCommand": evil,
    }.items():  # fmt: skip
        git("config", "-f", str(bench.path / ".git/config"), key, value)
    (bench.tmp / "excludes").write_text("*\n")
    (bench.path / "f").chmod(0o755)
    bench.write("crlf.txt", b"a\r\nb\n")
    bench.write("x.dat", "edited\n")
    bench.write("y.lfs", "raw lfs\n")
    result = bench.capture()
    assert result.changes() == {"f": "M", "crlf.txt": "A", "x.dat": "M", "y.lfs": "A"}
    files = result.files()
    assert files["f"] == ("100755", b"1")
    assert (files["crlf.txt"], files["x.dat"], files["y.lfs"]) == (b"a\r\nb\n", b"edited\n", b"raw lfs\n")
    assert not marker.exists()


def test_the_environment_of_the_sandbox_is_not_obeyed(bench):
    bench.cloned()
    bench.write("f", "2")
    inherited = bench.sandbox.run

    def hostile(argv, **options):
        return inherited(argv, **options | {"env": {"GIT_DIR": "/nowhere", "GIT_INDEX_FILE": "/x", "GIT_TRACE": "2"}})

    bench.sandbox.run = hostile
    assert bench.capture().changes() == {"f": "M"}


def test_line_ending_noise_is_no_change(bench):
    bench.cloned({"w.txt": b"a\r\nb\r\n"})
    bench.write(".gitattributes", "*.txt text\n")
    bench.git("add", ".gitattributes")
    bench.git("commit", "-qm", "attributes")
    git("push", "-q", str(bench.host), "main", cwd=bench.path)
    bench.take_baseline()
    bench.write("new", "x")
    result = bench.capture()
    assert result.changes() == {"new": "A"}
    assert result.part.baseline != git("rev-parse", f"{result.part.base}^{{tree}}", cwd=bench.host).stdout.strip()
    assert set(result.refs[0]) == {"snapshot", "baseline", "head", "heads/main"}


@pytest.mark.parametrize("attribute", ["working-tree-encoding=UTF-16", "working-tree-encoding"])
def test_files_in_another_encoding_than_their_attributes_say_are_taken_as_they_are(bench, attribute):
    bench.cloned()
    bench.write(".gitattributes", f"*.txt {attribute}\n*.log {attribute}\n")
    bench.write(".gitignore", "*.log\n")
    bench.write("a.txt", "no byte order mark")
    bench.write("odd.txt", b"\xff\xfe1")
    bench.write("x.log", "ignored")
    bench.write("f", "two\n")
    result = bench.capture(include=("*.log",))
    files = result.files()
    assert (files["a.txt"], files["odd.txt"], files["x.log"]) == (b"no byte order mark", b"\xff\xfe1", b"ignored")
    assert (files["f"], result.omitted) == (b"two\n", ())


def test_a_clone_whose_files_are_in_another_encoding_has_a_baseline(bench):
    bench.cloned({"a.txt": b"\xff\xfe1"})
    bench.write(".gitattributes", "*.txt working-tree-encoding=UTF-16\n")
    bench.git("add", ".gitattributes")
    bench.git("commit", "-qm", "attributes")
    git("push", "-q", str(bench.host), "main", cwd=bench.path)
    bench.take_baseline()
    assert bench.capture().changes() == {}
    bench.write("a.txt", "edited")
    result = bench.capture()
    assert (result.changes(), result.files()["a.txt"]) == ({"a.txt": "M"}, b"edited")


def test_an_edit_of_a_tracked_but_ignored_file(bench):
    bench.cloned({"settings.ini": "a=1"})
    bench.write(".gitignore", "settings.ini\nforced\n*.o\n")
    bench.write("settings.ini", "a=2")
    bench.write("forced", "force-added")
    bench.write("x.o", "object")
    bench.git("add", "-f", "forced")
    result = bench.capture()
    assert result.changes() == {"settings.ini": "M", ".gitignore": "A", "forced": "A"}
    assert result.text.ignored == 1


def test_everything_excluded_by_the_clone_is_counted(bench):
    bench.cloned()
    (bench.path / ".git/info/exclude").write_text("*\n")
    bench.write("new", "n")
    bench.write("f", "2")
    result = bench.capture()
    assert result.changes() == {"f": "M"}
    assert result.text.ignored == 1


def test_staged_and_unstaged_work_is_left_as_it_is(bench):
    bench.cloned()
    bench.write("f", "one\ntwo\n")
    bench.git("add", "f")
    bench.write("f", "one\ntwo\nthree\n")
    bench.write("u", "n")
    bench.git("add", "-N", "u")
    before = bench.git("diff", "--cached")
    assert bench.capture().files()["f"] == b"one\ntwo\nthree\n"
    assert bench.git("diff", "--cached") == before


def test_index_lock_split_index_and_corrupt_index(bench):
    bench.cloned()
    bench.write("new", "n")
    (bench.path / ".git/index.lock").write_text("")
    assert bench.capture().changes() == {"new": "A"}
    (bench.path / ".git/index.lock").unlink()
    bench.git("update-index", "--split-index")
    bench.git("add", "new")
    bench.write("f", "2")
    assert bench.capture().changes() == {"new": "A", "f": "M"}
    (bench.path / ".git/index").write_bytes(b"DIRCgarbage")
    assert bench.capture().changes() == {"new": "A", "f": "M"}
    (bench.path / ".git/index").unlink()
    assert bench.capture().changes() == {"new": "A", "f": "M"}


def test_what_git_cannot_carry_is_named(bench, monkeypatch):
    bench.cloned({"f": "1", ".gitignore": "skipped/\n"})
    os.mkfifo(bench.path / "pipe")
    listening = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(bench.path)
    listening.bind("sock")
    bench.write("twin", "t")
    os.link(bench.path / "twin", bench.path / "twin2")
    bench.write("suid", "s").chmod(0o4755)
    (bench.path / "hollow/inner").mkdir(parents=True)
    (bench.path / "x/.GIT").mkdir(parents=True)
    bench.write("y/.Git/config", "trick")
    os.mkfifo(Path(bench.path / "skipped").mkdir() or bench.path / "skipped/pipe")
    (bench.path / "skipped/empty").mkdir()
    result = bench.capture()
    listening.close()
    assert result.text.omitted == {
        "fifo": 1, "socket": 1, "special_mode": 1, "hardlink": 2, "refused_name": 1, "empty_directory_unnameable": 1,
    }  # fmt: skip
    assert set(result.omitted) == {
        ("fifo", b"pipe"), ("socket", b"sock"), ("special_mode", b"suid"), ("hardlink", b"twin"),
        ("hardlink", b"twin2"), ("refused_name", b"y/.Git/config"), ("empty_directory_unnameable", b"x/.GIT"),
    }  # fmt: skip
    assert result.empty == (b"hollow/inner",)
    assert result.changes() == {"suid": "A", "twin": "A", "twin2": "A"}


def test_a_device_is_named(bench):
    bench.cloned()
    if subprocess.run(["mknod", str(bench.path / "null"), "c", "1", "3"], check=False).returncode:
        pytest.fail("the tests of devices need the right to make one")
    assert bench.capture().text.omitted == {"device": 1}


def test_a_file_over_the_cap_is_skipped_and_named(bench):
    bench.cloned({"f": "1", "kept": "k" * 5000, "grown": "g"})
    bench.write("core", "c" * 1001)
    bench.write("fits", "c" * 1000)
    bench.write("grown", "g" * 2000)
    result = bench.capture(max_file=1000)
    assert result.changes() == {"fits": "A"}
    assert set(result.omitted) == {("too_large", b"core"), ("too_large", b"grown")}


def test_globs(bench):
    bench.cloned({"f": "1", ".gitignore": "*.log\nbuild/\n", "keep/secret.env": "old", "gone.env": "old"})
    bench.write("a.log", "log")
    bench.write("deep/b.log", "log")
    bench.write("build/out/bin", "b" * 50)
    bench.write("build/huge", "b" * 5000)
    bench.write(".env", "secret")
    bench.write("deep/x.env", "secret")
    bench.write("keep/secret.env", "new")
    (bench.path / "gone.env").unlink()
    bench.write("tmp/a/b", "t")
    bench.commit("the agent commits what is excluded")
    result = bench.capture(include=("build", "/a.log"), exclude=("*.env", "/tmp/"), max_file=1000)
    assert result.changes() == {"a.log": "A", "build/out/bin": "A"}
    assert result.text.omitted == {"too_large": 1}
    assert result.text.ignored == 2
    bench.write("deep/y.env", "uncommitted")
    result = bench.capture(exclude=("*.env", "/tmp/"))
    assert result.changes() == {}
    assert result.omitted == (("excluded", b"deep/y.env"),)
