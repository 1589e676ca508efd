import os
from pathlib import Path

import pytest

from worker.stores.diagnostics import DiagnosticsStore


def made(directory: Path, *, max_bytes: int = 10_000, ttl: float = 3600) -> DiagnosticsStore:
    return DiagnosticsStore(directory / "d", max_bytes=max_bytes, ttl=ttl)


def test_a_tail_is_for_the_operator_alone(tmp_path: Path):
    old = os.umask(0)
    try:
        path = made(tmp_path).keep("task-1", 2, "tail ü")
    finally:
        os.umask(old)
    assert path == tmp_path / "d" / "task-1-2.txt"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.read_text(encoding="utf-8") == "tail ü"


def test_tails_are_read_in_order_of_attempts(tmp_path: Path):
    store = made(tmp_path)
    for attempt in (10, 2, 1):
        store.keep("task", attempt, f"a{attempt}")
    store.keep("task-1", 3, "another task's")
    assert store.read("task") == [(1, "a1"), (2, "a2"), (10, "a10")]
    assert store.read("unknown") == []


def test_a_tail_is_written_anew(tmp_path: Path):
    store = made(tmp_path)
    store.keep("task", 1, "long old text")
    store.keep("task", 1, "new")
    assert store.read("task") == [(1, "new")]


def test_a_link_in_its_place_is_not_followed(tmp_path: Path):
    store = made(tmp_path)
    store.keep("other", 1, "x")
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    (tmp_path / "d" / "task-1.txt").symlink_to(victim)
    path = store.keep("task", 1, "tail")
    assert victim.read_text() == "theirs"
    assert path is not None
    assert not path.is_symlink()


@pytest.mark.parametrize("task_id", ["", "../x", "a/b", "a b", "a\n", "x" * 65, "\x00", "é", "*"])
def test_a_hostile_id_has_no_place(tmp_path: Path, task_id: str):
    store = made(tmp_path)
    store.keep("real", 1, "x")
    assert store.keep(task_id, 1, "tail") is None
    assert store.read(task_id) == []
    assert [path.name for path in tmp_path.rglob("*.txt")] == ["real-1.txt"]


def test_the_oldest_go_when_the_total_is_too_large(tmp_path: Path):
    store = made(tmp_path, max_bytes=2500)
    for number in range(4):
        path = store.keep(f"t{number}", 1, "x" * 1000)
        if path is not None:
            os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 100 + number))
    store.keep("t4", 1, "x" * 1000)
    assert sorted(path.stem for path in (tmp_path / "d").iterdir()) == ["t3-1", "t4-1"]


def test_each_goes_when_its_time_is_over(tmp_path: Path):
    store = made(tmp_path, ttl=100)
    old, young = store.keep("old", 1, "x"), store.keep("young", 1, "x")
    assert old is not None
    assert young is not None
    os.utime(old, (old.stat().st_atime, old.stat().st_mtime - 101))
    os.utime(young, (young.stat().st_atime, young.stat().st_mtime - 90))
    store.keep("new", 1, "x")
    assert sorted(path.stem for path in (tmp_path / "d").iterdir()) == ["new-1", "young-1"]


def test_no_place_fails_no_job(tmp_path: Path):
    (tmp_path / "d").write_text("a file where the directory would be")
    assert made(tmp_path).keep("task", 1, "tail") is None


def test_broken_text_is_kept_as_far_as_it_goes(tmp_path: Path):
    store = made(tmp_path)
    store.keep("task", 1, "a\udcffb")
    assert store.read("task") == [(1, "a?b")]
