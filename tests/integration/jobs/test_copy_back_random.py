"""Random work through the real job: what is delivered is what lay in the sandbox, by path, bytes, mode and link."""

import os
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.doubles.repositories import git
from tests.rig.jobs import Service

Tree = dict[bytes, tuple[str, bytes]]
"""Path -> git's mode and the content; a link's content is its target."""

BASE = {"a": b"one\n", "d/b": b"two\n", "d/deep/c": b"three\n"}
COMPONENTS = [b"a", b"b", b"d", b"-x", b"n\nl", b"q\"'$`", b"\xff\x80", b"sp ace", b".hidden", b"\\n", b"*?", b"end\n"]
paths = st.lists(st.sampled_from(COMPONENTS), min_size=1, max_size=3).map(b"/".join) | st.just(b"/".join([b"z"] * 40))
contents = st.binary(max_size=40) | st.sampled_from([b"one\n", b"two\n", b"\0\r\n", b"x" * 5000])
steps = st.one_of(
    st.tuples(st.just("write"), paths, contents),
    st.tuples(st.just("run"), paths, contents),
    st.tuples(st.just("link"), paths, st.sampled_from([b"a", b"./d/b", b"no\nwhere", b"sp ace"])),
    st.tuples(st.just("remove"), paths | st.sampled_from([b"a", b"d/b", b"d"]), st.none()),
    st.tuples(st.just("rename"), st.sampled_from([b"a", b"d", b"d/b"]), st.sampled_from([b"moved", b"-m", b"n\nm"])),
    st.tuples(st.just("commit"), st.none(), st.none()),
    st.tuples(st.just("branch"), st.sampled_from([b"side", b"topic/x"]), st.none()),
)  # fmt: skip

RESET = """
git checkout -qf main && git reset -q --hard "$BASE" && git clean -qfdx
git for-each-ref --format='delete %(refname)' refs/heads | grep -vx 'delete refs/heads/main' | git update-ref --stdin
"""


class Model:
    """What the work tree holds, and the shell script that makes it so."""

    def __init__(self) -> None:
        self.tree: Tree = {name.encode(): ("100644", data) for name, data in BASE.items()}
        self.lines: list[str] = []

    def act(self, what: str, name: bytes | None, value: bytes | None) -> None:
        match what:
            case "write" | "run" | "link":
                self._clear(name)
                mode = {"write": "100644", "run": "100755", "link": "120000"}[what]
                self.tree[name] = (mode, value)
                self._script(what, name, value)
            case "remove":
                self._forget(name)
                # Above it there may be a link that leads to itself.
                self.lines.append(f'{word("p", name)}; rm -rf -- "./$p" || [ ! -e "./$p" ]')
            case "rename":
                self._rename(name, value)
            case "commit":
                self.lines.append("git add -A && git commit -q --allow-empty -m work")
            case "branch":
                self.lines.append(f"git checkout -q -B {name.decode()}")

    def _script(self, what: str, name: bytes, value: bytes) -> None:
        make = {
            "write": 'cat >"./$p"; chmod 644 "./$p"',
            "run": 'cat >"./$p"; chmod 755 "./$p"',
            "link": 'ln -s -- "$v" "./$p"',
        }[what]
        parents = [word("q", b"/".join(name.split(b"/")[:n])) for n in range(1, name.count(b"/") + 1)]
        make_directory = '[ -d "./$q" ] && [ ! -L "./$q" ] || { rm -rf -- "./$q"; mkdir -- "./$q"; }'
        self.lines += [f"{parent}; {make_directory}" for parent in parents]
        self.lines.append(f'{word("p", name)}; rm -rf -- "./$p"')
        if what == "link":
            self.lines.append(f"{word('v', value)}; {make}")
        else:
            self.lines.append(f"printf '{octal(value)}' | {{ {make}; }}")

    def _rename(self, old: bytes, new: bytes) -> None:
        self.lines.append(
            f"{word('p', old)}; {word('v', new)}; "
            'if [ -e "./$p" ] || [ -L "./$p" ]; then rm -rf -- "./$v"; mv -- "./$p" "./$v"; fi'
        )
        moved = {path: entry for path, entry in self.tree.items() if path == old or path.startswith(old + b"/")}
        if moved:
            self._forget(new)
            for path, entry in moved.items():
                del self.tree[path]
                self.tree[new + path[len(old) :]] = entry

    def _forget(self, name: bytes) -> None:
        self.tree = {path: e for path, e in self.tree.items() if path != name and not path.startswith(name + b"/")}

    def _clear(self, name: bytes) -> None:
        self._forget(name)
        words = name.split(b"/")
        for count in range(1, len(words)):
            self.tree.pop(b"/".join(words[:count]), None)


def octal(data: bytes) -> str:
    return "".join(f"\\{byte:03o}" for byte in data)


def word(variable: str, data: bytes) -> str:
    """Shell that sets a variable to any bytes without NUL; the dot keeps newlines at the end."""
    return f"{variable}=$(printf '{octal(data)}.'); {variable}=${{{variable}%.}}"


def listed(home: Path, commit: str) -> Tree:
    """A commit's tree, read by git."""
    return {
        path: (mode, git_bytes(home, "cat-file", "blob", oid))
        for mode, oid, path in entries(git_bytes(home, "ls-tree", "-r", "-z", commit))
    }


def entries(listing: bytes):
    for line in listing.split(b"\0")[:-1]:
        about, _, path = line.partition(b"\t")
        mode, _, oid = about.decode().split()
        yield mode, oid, path


def git_bytes(home: Path, *args: str) -> bytes:
    return subprocess.run(["git", *args], cwd=home, capture_output=True, check=True).stdout


def there(root: Path) -> Tree:
    """A work tree, as the file system has it."""
    found: Tree = {}
    for path in root.rglob("*"):
        name, about = path.relative_to(root), path.lstat()
        if name.parts[0] == ".git" or stat.S_ISDIR(about.st_mode):
            continue
        if stat.S_ISLNK(about.st_mode):
            found[os.fsencode(name)] = ("120000", os.fsencode(os.readlink(path)))  # noqa: PTH115 - a Path drops "./"
        else:
            mode = "100755" if about.st_mode & stat.S_IXUSR else "100644"
            found[os.fsencode(name)] = (mode, path.read_bytes())
    return found


@pytest.fixture(scope="module")
def cloned(made: Service, provider: str) -> tuple[dict, str, str]:
    url = made.public("random", BASE)
    hub = made.home / "hub.git"
    git("clone", "-q", "--bare", url, str(hub))
    return made.outcome(made.clone(url, provider=provider, run_id="run-random")).result, "run-random", url


@pytest.mark.timeout(300)
@settings(  # not shrunk: an example takes two seconds
    max_examples=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=set(Phase) - {Phase.shrink, Phase.explain},
)
@given(work=st.lists(steps, min_size=1, max_size=10))
def test_what_is_delivered_is_what_is_there(made: Service, cloned, work):
    result, run_id, url = cloned
    model = Model()
    for step in work:
        model.act(*step)
    script = "\n".join([f"BASE={result['commit']}", RESET, *model.lines])
    made.in_sandbox(result, run_id, script)
    heads = made.in_sandbox(result, run_id, "git for-each-ref --format='%(objectname) %(refname)' refs/heads")

    outcome = made.outcome(made.copy_back(result, run_id, deliver={"repository": "hub"}))

    answer = outcome.result
    assert answer.get("outcome") == "succeeded", outcome
    hub = made.home / "hub.git"
    assert listed(hub, answer["snapshot"]) == model.tree
    with tempfile.TemporaryDirectory() as folder:
        home = restored(made, answer, url, Path(folder))
        assert there(home) == model.tree
        brought = git_bytes(home, "for-each-ref", "--format=%(objectname) %(refname)", "refs/sandferry/heads").decode()
    new = {line for line in heads.splitlines() if not line.startswith(result["commit"])}
    assert {line.replace("refs/sandferry/", "refs/") for line in brought.splitlines()} >= new
    before = {path: ("100644", data) for path, data in ((name.encode(), data) for name, data in BASE.items())}
    assert answer["files"] == {
        "added": len(model.tree.keys() - before.keys()),
        "modified": sum(before[path] != model.tree[path] for path in before.keys() & model.tree.keys()),
        "deleted": len(before.keys() - model.tree.keys()),
    }


def restored(made: Service, answer: dict, url: str, folder: Path) -> Path:
    """The artifact, restored with plain git as docs/artifacts.md says."""
    store, _, digest = answer["artifact"].partition("/sha256:")
    made.services.artifact_store(store).fetch(digest, folder / "artifact")
    home = folder / "restored"
    git("clone", "-q", url, str(home))
    git("fetch", "-q", str(folder / "artifact/part-0.bundle"), "refs/sandferry/*:refs/sandferry/*", cwd=home)
    git("checkout", "-q", "--detach", "refs/sandferry/snapshot", cwd=home)
    return home
