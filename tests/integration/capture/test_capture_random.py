"""Random work: what arrives is what is there, by path, bytes, executable bit and link target."""

import os
import shutil
import stat
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.integration.capture.bench import Bench, put

COMPONENTS = ["a", "b", "d", "-x", "n\nl", "q\"'", "\udcff\udc80", "sp ace", ".hidden", "\\n"]
paths = st.lists(st.sampled_from(COMPONENTS), min_size=1, max_size=3).map("/".join)
contents = st.binary(max_size=40) | st.sampled_from([b"one\n", b"two\n", b"\0\r\n"])
steps = st.one_of(
    st.tuples(st.just("write"), paths, contents),
    st.tuples(st.just("run"), paths, contents),
    st.tuples(st.just("link"), paths, st.sampled_from(["a", "../x", "/etc/passwd", "nowhere"])),
    st.tuples(st.just("mkdir"), paths, st.none()),
    st.tuples(st.just("remove"), paths, st.none()),
    st.tuples(st.just("add"), st.none(), st.none()),
    st.tuples(st.just("commit"), st.none(), st.none()),
    st.tuples(st.just("branch"), st.sampled_from(["x", "y"]), st.none()),
)


def clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def act(bench: Bench, what: str, name: str | None, value: object) -> None:
    path = bench.path / (name or "")
    if name and what != "branch":
        parents = [path.parents[n] for n in range(len(Path(name).parts) - 1)]
        for parent in reversed(parents):
            if parent.is_symlink() or parent.is_file():
                parent.unlink()
        clear(path)
    match what:
        case "write" | "run":
            put(path, value)
            path.chmod(0o755 if what == "run" else 0o644)
        case "link":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(str(value))
        case "mkdir":
            path.mkdir(parents=True)
        case "add":
            bench.git("add", "-A")
        case "commit":
            bench.commit("work")
        case "branch":
            bench.git("checkout", "-q", "-B", name)


def there(root: Path) -> tuple[dict[str, object], set[bytes]]:
    """Files and empty directories of a work tree."""
    files: dict[str, object] = {}
    empty = set()
    for directory, names, others in os.walk(root):
        if directory == str(root):
            names.remove(".git")
        links = [name for name in names if Path(directory, name).is_symlink()]
        if not names and not others and directory != str(root):
            empty.add(os.fsencode(os.path.relpath(directory, root)))
        for name in [*others, *links]:
            path = Path(directory, name)
            key = str(path.relative_to(root))
            if path.is_symlink():
                files[key] = ("120000", os.fsencode(path.readlink()))
            elif path.stat().st_mode & stat.S_IXUSR:
                files[key] = ("100755", path.read_bytes())
            else:
                files[key] = path.read_bytes()
    return files, empty


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(steps, max_size=12))
def test_what_arrives_is_what_is_there(work):
    with tempfile.TemporaryDirectory(prefix="sandferry-capture-") as folder:
        bench = Bench(Path(folder)).cloned()
        for step in work:
            act(bench, *step)
        files, empty = there(bench.path)
        result = bench.capture()
        assert (result.files(), set(result.empty)) == (files, empty)
        assert result.text.omitted.keys() <= {"reflog_only"}
