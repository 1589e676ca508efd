"""History: what the agent did with git is neither lost nor mistaken for a change."""

import shutil
from pathlib import Path

import pytest

from tests.doubles.repositories import git


def test_work_that_was_committed(bench):
    bench.cloned()
    bench.write("f", "two\n")
    bench.commit("agent commits")
    result = bench.capture()
    assert result.changes() == {"f": "M"}
    assert result.log("head") == ["agent commits", "base"]
    assert result.log("snapshot") == ["Sandferry snapshot", "agent commits", "base"]


@pytest.mark.parametrize("act", ["amend", "orphan", "reset", "switch", "rebase"])
def test_work_whose_history_was_rewritten(bench, act):
    bench.cloned()
    bench.write("f", "two\n")
    match act:
        case "amend":
            bench.git("commit", "-qam", "amended", "--amend")
        case "orphan":
            bench.git("checkout", "-q", "--orphan", "fresh")
            bench.commit("orphan")
        case "reset":
            bench.commit("one")
            bench.git("reset", "-q", "--soft", "HEAD~1")
        case "switch":
            bench.git("checkout", "-qb", "other")
            bench.commit("other")
        case "rebase":
            bench.commit("one")
            bench.git("commit", "-q", "--amend", "-m", "two")
    result = bench.capture()
    assert result.changes() == {"f": "M"}
    assert result.part.base == bench.request["base"]
    assert result.bundles[0] < 1500


def test_an_orphan_history_does_not_send_the_base_again(bench):
    noise = bytes(range(256)) * 40
    bench.cloned({f"n{i}": str(i).encode() + noise[i:] for i in range(200)})
    bench.git("checkout", "-q", "--orphan", "fresh")
    bench.write("f", "two\n")
    bench.commit("orphan")
    assert bench.capture().bundles[0] < 16_000


def test_other_branches_tags_and_stashes_come_along(bench):
    bench.cloned()
    bench.git("tag", "old-light")
    bench.git("branch", "same")
    bench.git("checkout", "-qb", "feature/x")
    bench.write("x", "x")
    tip = bench.commit("on a branch")
    bench.git("tag", "light")
    bench.git("tag", "-am", "noted", "heavy")
    bench.git("checkout", "-q", "main")
    bench.git("tag", "-am", "release of the base", "v1")
    for word in ("first", "second"):
        bench.write("f", word)
        bench.git("stash", "-q", "-m", word)
    bench.git("update-ref", "refs/notes/mine", tip)
    result = bench.capture()
    refs = result.refs[0]
    assert set(refs) == {
        "snapshot", "head", "heads/main", "heads/feature/x", "tags/light", "tags/heavy", "tags/v1",
        "stash/0", "stash/1",
    }  # fmt: skip
    assert refs["heads/feature/x"] == refs["tags/light"] == tip
    assert [result.log(f"stash/{n}")[0] for n in (0, 1)] == ["On main: second", "On main: first"]
    assert result.files(commit=refs["stash/1"])["f"] == b"first"
    assert result.omitted == (("other_ref", b"refs/notes/mine"),)
    assert result.changes() == {}


def test_commits_that_only_a_reflog_remembers_are_counted(bench):
    bench.cloned()
    bench.write("f", "two\n")
    lost = bench.commit("lost")
    bench.git("reset", "-q", "--hard", "HEAD~1")
    assert bench.capture().omitted == (("reflog_only", lost.encode()),)


def test_a_detached_head(bench):
    bench.cloned()
    bench.git("checkout", "-q", "--detach")
    bench.write("f", "two\n")
    bench.commit("detached")
    result = bench.capture()
    assert (result.part.branch, result.log("head")[0]) == (False, "detached")
    assert set(result.refs[0]) == {"snapshot", "head"}


@pytest.mark.parametrize("state", ["merge", "rebase", "am", "cherry_pick", "revert", "bisect"])
def test_in_the_middle_of(bench, state):
    bench.cloned()
    bench.write("f", "ours\n")
    ours = bench.commit("ours")
    bench.git("checkout", "-qb", "side", "HEAD~1")
    bench.write("f", "theirs\n")
    bench.commit("theirs")
    match state:
        case "merge":
            bench.git("merge", "main", check=False)
        case "rebase":
            bench.git("rebase", "main", check=False)
        case "am":
            patch = bench.git("format-patch", "-1", "--stdout", "main")
            (bench.tmp / "p").write_text(patch + "\n")
            bench.git("am", str(bench.tmp / "p"), check=False)
        case "cherry_pick":
            bench.git("cherry-pick", "main", check=False)
        case "revert":
            bench.git("revert", ours, check=False)
        case "bisect":
            bench.git("bisect", "start", "HEAD", "HEAD~1", check=False)
    bench.write("new", "n")
    result = bench.capture()
    assert result.part.state == state
    assert result.files()["f"] == (bench.path / "f").read_bytes()
    assert result.changes()["new"] == "A"


def test_a_repository_without_a_commit(bench):
    bench.plain()
    bench.git("init", "-q", "-b", "main")
    bench.write("app.py", "hello\n")
    result = bench.capture()
    part = result.part
    assert (part.kind, part.head, part.base, part.baseline, part.branch) == ("repository", None, None, None, True)
    assert result.files() == {"app.py": b"hello\n"}
    assert (set(result.refs[0]), result.needs[0]) == ({"snapshot"}, [])
    assert result.log("snapshot") == ["Sandferry snapshot"]


def test_nothing_at_all(bench):
    bench.plain()
    result = bench.capture()
    assert (result.part.kind, result.files(), result.empty) == ("directory", {}, ())


def test_a_directory_that_is_no_repository(bench):
    bench.plain()
    bench.write("a/b", "1")
    bench.write("x.log", "ignored as in a repository")
    bench.write(".gitignore", "*.log\n")
    result = bench.capture()
    assert result.part.kind == "directory"
    assert result.files() == {"a/b": b"1", ".gitignore": b"*.log\n"}
    assert result.text.ignored == 1


def test_the_base_is_absent(bench):
    bench.cloned()
    bench.request |= {"base": "1" * 40, "store": None, "baseline": None}
    bench.write("f", "two\n")
    result = bench.capture()
    assert (result.part.base, result.part.base_absent, result.part.baseline) == (None, True, None)
    assert result.needs[0] == []
    assert result.log("head") == ["base"]


def test_the_agent_removed_the_repository_and_began_another(bench):
    bench.cloned()
    shutil.rmtree(bench.path / ".git")
    bench.write("f", "two\n")
    result = bench.capture()
    assert (result.part.kind, result.part.head, result.part.base) == ("directory", None, bench.request["base"])
    assert result.changes() == {"f": "M"}
    bench.git("init", "-q", "-b", "main")
    bench.commit("new history")
    result = bench.capture()
    assert (result.part.kind, result.log("head")) == ("repository", ["new history"])
    assert result.changes() == {"f": "M"}
    assert result.bundles[0] < 1500


@pytest.mark.parametrize(
    ("file", "text", "head"),
    [
        ("HEAD", "garbage", False),
        ("HEAD", None, False),
        ("config", "[[[", True),
        ("config", "[core]\nrepositoryFormatVersion = 1\n[extensions]\nfromTheFuture = 1\n", True),
    ],
)
def test_a_broken_repository_is_named_and_salvaged(bench, file, text, head):
    bench.cloned()
    bench.git("checkout", "-qb", "feature")
    bench.write("g", "new\n")
    tip = bench.commit("on a branch")
    (bench.path / ".git" / file).unlink()
    if text is not None:
        (bench.path / ".git" / file).write_text(text)
    bench.write("f", "two\n")
    result = bench.capture()
    assert result.changes() == {"f": "M", "g": "A"}
    assert result.omitted == (("broken_repository", b".git"),)
    assert result.refs[0]["heads/feature"] == tip
    assert result.part.head == (tip if head else None)


@pytest.mark.parametrize("remains", ["nothing", "a file", "a link to nowhere"])
def test_a_repository_of_which_nothing_is_left_is_named(bench, remains):
    bench.cloned()
    shutil.rmtree(bench.path / ".git")
    match remains:
        case "nothing":
            (bench.path / ".git").mkdir()
        case "a file":
            bench.write(".git", "gitdir: /nowhere\n")
        case _:
            (bench.path / ".git").symlink_to("nowhere")
    bench.write("f", "two\n")
    result = bench.capture()
    assert (result.part.kind, result.changes()) == ("directory", {"f": "M"})
    assert result.omitted == (("broken_repository", b".git"),)


def test_a_head_on_no_branch_takes_its_commit_along(bench):
    bench.cloned()
    bench.git("update-ref", "refs/work/x", "HEAD")
    bench.git("symbolic-ref", "HEAD", "refs/work/x")
    bench.write("f", "two\n")
    tip = bench.commit("elsewhere")
    result = bench.capture()
    assert (result.part.head, result.part.branch) == (tip, False)
    assert set(result.refs[0]) == {"snapshot", "head"}
    assert result.omitted == (("other_ref", b"refs/work/x"),)


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_damaged_objects_whose_files_lie_there_are_made_again(bench, damage):
    bench.cloned()
    for name in ("z", "-rf", "n\nl"):
        bench.write(name, f"content of {name}\n")
    tip = bench.commit("agent")
    for name in ("z", "-rf", "n\nl"):
        oid = bench.git("rev-parse", f"HEAD:{name}")
        loose = bench.path / ".git/objects" / oid[:2] / oid[2:]
        loose.unlink()
        if damage is not None:
            loose.write_bytes(damage)
    result = bench.capture()
    assert (result.part.head, result.omitted) == (tip, ())
    assert result.files()["n\nl"] == b"content of n\nl\n"


@pytest.mark.parametrize("kind", ["heads", "tags"])
def test_a_ref_that_is_called_head(bench, kind):
    bench.cloned()
    bench.git("checkout", "-qb", "feature")
    bench.git("update-ref", f"refs/{kind}/HEAD", "HEAD")
    bench.write("f", "two\n")
    tip = bench.commit("agent")
    result = bench.capture()
    assert (result.part.head, result.part.branch, result.refs[0]["heads/feature"]) == (tip, True, tip)


def test_refs_that_cannot_be_read_are_named_and_stop_nothing(bench):
    bench.cloned()
    with (bench.path / ".git/packed-refs").open("a") as file:
        file.write("garbage\n")
    bench.write("f", "two\n")
    result = bench.capture()
    assert result.changes() == {"f": "M"}
    assert result.omitted == (("broken_repository", b".git/packed-refs"),)


@pytest.mark.parametrize("reflog", ["bad\n", None])
def test_a_stash_without_its_reflog_comes_along(bench, reflog):
    bench.cloned()
    bench.write("f", "two\n")
    bench.git("stash", "-q")
    log = bench.path / ".git/logs/refs/stash"
    log.unlink()
    if reflog is not None:
        log.write_text(reflog)
    result = bench.capture()
    assert result.files(commit=result.refs[0]["stash/0"])["f"] == b"two\n"


def test_more_refs_than_a_worker_takes_are_named(dash):
    dash.cloned()
    dash.write("f", "two\n")
    tip = dash.commit("agent")
    lines = [f"{tip} refs/heads/many/{number}\n" for number in range(9100)]
    lines += [f"{tip} refs/tags/{'/'.join(['x' * 200] * 6)}\n"]
    (dash.path / ".git/packed-refs").write_text("".join(lines))
    result = dash.capture()
    assert result.refs[0]["heads/main"] == tip
    assert len(result.refs[0]) == 9000 + len({"snapshot", "head"})
    assert result.text.omitted == {"other_ref": 102}


def test_a_branch_whose_name_git_does_not_take_is_named(bench):
    bench.cloned()
    bench.git("checkout", "-qb", "feature")
    bench.write("f", "two\n")
    bench.commit("on a branch")
    bench.git("checkout", "-q", "main")
    heads = bench.path / ".git/refs/heads"
    (heads / "feature").rename(heads / "feature (copy)")
    omitted = dict(bench.capture().omitted)
    assert omitted["other_ref"] == b"refs/heads/feature (copy)"


def test_a_tag_of_a_tag_comes_along(bench):
    bench.cloned()
    bench.write("f", "two\n")
    bench.commit("agent")
    bench.git("tag", "-am", "inner", "t1")
    bench.git("tag", "-am", "outer", "t2", "t1")
    assert {"tags/t1", "tags/t2"} <= set(bench.capture().refs[0])


def test_a_work_tree_elsewhere_is_named(bench):
    bench.cloned()
    bench.git("worktree", "add", "-q", "-b", "there", str(bench.tmp / "there"))
    bench.git("worktree", "add", "-q", "-b", "gone", str(bench.tmp / "gone"))
    shutil.rmtree(bench.tmp / "gone")
    bench.git("worktree", "add", "-q", "-b", "here", "here")
    (bench.path / "here/new").write_text("n")
    result = bench.capture()
    assert result.omitted == (("outside", str(bench.tmp / "there").encode()),)
    assert result.files(result.at("here"))["new"] == b"n"


def test_missing_objects_cost_their_ref_and_no_more(bench):
    bench.cloned()
    bench.request |= {"store": None, "baseline": None}
    bench.git("checkout", "-qb", "broken")
    bench.write("x", "x" * 100)
    tip = bench.commit("broken")
    bench.git("checkout", "-q", "main")
    bench.write("f", "two\n")
    tree = bench.git("rev-parse", f"{tip}^{{tree}}")
    (bench.path / f".git/objects/{tree[:2]}/{tree[2:]}").unlink()
    result = bench.capture()
    assert result.files()["f"] == b"two\n"
    assert result.omitted == (("missing_object", b"heads/broken"),)
    assert result.log("head") == result.log("heads/main") == ["base"]
    commit = bench.git("rev-parse", "HEAD")
    bench.commit("on top")
    bench.commit("of it")
    top = bench.git("rev-parse", "HEAD~1")
    (bench.path / f".git/objects/{top[:2]}/{top[2:]}").unlink()
    result = bench.capture(base=commit)
    assert result.files()["f"] == b"two\n"
    assert result.part.head is None
    assert dict.fromkeys(name for _, name in result.omitted).keys() == {b"heads/broken", b"heads/main", b"HEAD"}


@pytest.mark.parametrize("depth", [1, 2])
def test_a_shallow_clone(bench, depth):
    origin = bench.tmp / "origin"
    git("init", "-q", "-b", "main", str(origin))
    for n in range(4):
        (origin / "f").write_text(f"{n}\n")
        bench.commit(f"c{n}", at=origin)
    git("clone", "-q", f"--depth={depth}", origin.as_uri(), str(bench.path))
    git("clone", "-q", "--bare", str(origin), str(bench.host))
    bench.take_baseline()
    bench.write("f", "agent\n")
    bench.commit("agent")
    result = bench.capture()
    assert result.needs[0] == [bench.request["base"]]
    assert result.log("head") == ["agent", "c3", "c2", "c1", "c0"]
    root = bench.git("rev-list", "--max-parents=0", "HEAD")
    result = bench.capture(base="1" * 40)
    assert (result.part.base_absent, result.needs[0]) == (True, [root])
    assert result.log("head")[0] == "agent"


def test_sha256(bench):
    bench.cloned(format_="sha256")
    bench.write("f", "two\n")
    bench.commit("agent")
    bench.write("g", "three\n")
    result = bench.capture()
    assert (result.part.format, len(result.part.snapshot)) == ("sha256", 64)
    assert result.changes() == {"f": "M", "g": "A"}


def test_a_linked_work_tree_and_borrowed_objects(bench):
    bench.cloned()
    main = bench.path
    bench.git("worktree", "add", "-q", "-b", "linked", "../linked")
    bench.path = main.parent / "linked"
    assert (bench.path / ".git").is_file()
    bench.write("f", "two\n")
    bench.commit("in the linked one")
    bench.write("g", "n")
    result = bench.capture(path=str(bench.path))
    assert result.changes() == {"f": "M", "g": "A"}
    assert set(result.refs[0]) == {"snapshot", "head", "heads/linked"}
    shared = main.parent / "shared"
    git("clone", "-q", "--shared", str(main), str(shared))
    (shared / "f").write_text("three\n")
    bench.path = shared
    assert bench.capture(path=str(shared)).changes() == {"f": "M"}


def test_a_workspace_inside_a_repository_is_the_whole_repository(bench):
    bench.cloned({"svc/x": "1", "root.txt": "1"})
    bench.write("svc/x", "2")
    bench.write("root.txt", "3")
    result = bench.capture(path=str(bench.path / "svc"))
    assert result.changes() == {"svc/x": "M", "root.txt": "M"}


def test_what_lies_beside_the_repository_is_named(bench):
    bench.cloned()
    repos, workspace = Path(bench.sandbox.layout.repos), Path(bench.sandbox.layout.workspace)
    (repos / "o").mkdir()
    bench.path = bench.path.rename(repos / "o/r")
    (workspace / "r").symlink_to(bench.path)
    (workspace / "notes.md").write_text("n")
    bench.git("worktree", "add", "-q", str(workspace / "linked"))
    result = bench.capture(path=str(workspace / "r"))
    assert set(result.omitted) == {("outside", b"notes.md"), ("outside", b"linked")}


def test_a_partial_clone_without_its_origin(bench):
    origin = bench.tmp / "origin"
    git("init", "-q", "-b", "main", str(origin))
    git("config", "uploadpack.allowFilter", "true", cwd=origin)
    for n in range(3):
        (origin / "f").write_text(f"{n}\n" * 99)
        bench.commit(f"c{n}", at=origin)
    git("clone", "-q", "--filter=blob:none", origin.as_uri(), str(bench.path))
    git("clone", "-q", "--bare", str(origin), str(bench.host))
    bench.take_baseline()
    origin.rename(bench.tmp / "gone")
    bench.write("f", "agent\n")
    assert bench.capture().changes() == {"f": "M"}


def test_a_file_that_a_partial_clone_never_had_can_be_removed(bench):
    origin = bench.tmp / "origin"
    git("init", "-q", "-b", "main", str(origin))
    git("config", "uploadpack.allowFilter", "true", cwd=origin)
    (origin / "d").mkdir()
    for name in ("f", "d/never"):
        (origin / name).write_text(name)
    bench.commit("base", at=origin)
    git("clone", "-q", "--filter=blob:none", "--sparse", origin.as_uri(), str(bench.path))
    git("clone", "-q", "--bare", str(origin), str(bench.host))
    bench.take_baseline()
    origin.rename(bench.tmp / "gone")
    bench.git("rm", "-rq", "--cached", "--sparse", "d")
    assert bench.capture().changes() == {"d/never": "D"}


def test_a_second_round_counts_from_the_first(bench):
    bench.cloned()
    bench.write("a", "a")
    bench.commit("round 1")
    first = bench.capture()
    bench.write("b", "b")
    bench.commit("round 2")
    second = bench.capture(base=first.part.head, baseline=None, store=None, host=first.hosts[0])
    assert second.changes() == {"b": "A"}
    assert second.needs[0] == [first.part.head]
    assert second.log("head") == ["round 2", "round 1", "base"]
