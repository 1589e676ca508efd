"""A capture that fails says why in one line of known words, and leaves nothing behind."""

import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

from tests.integration.capture.bench import SHELLS, Bench, soon
from tests.integration.capture.controlled import PRIVATE, controlled, failure, last_line
from worker.failures.cause import Cause
from worker.failures.classify import classify
from worker.failures.model import Cancelled, Category, EndedBy, OperationFailed
from worker.sandboxes.base import Completed
from worker.sandboxes.deadline import Deadline
from worker.snapshots.capture import CaptureRequest, capture, sweep
from worker.snapshots.capture_failure import nested_cause

REFERENCE = "remote_workspace_capture_failed: stage=archive exit=128 program=git helper_exit=1"


@pytest.mark.parametrize("at", ["*", "for-each-ref", "add", "write-tree", "commit-tree", "pack-objects", "hash-object"])
def test_the_reference_case(bench, at):
    bench.cloned()
    controlled(bench, at, f"echo 'fatal: not good: {PRIVATE}' >&2; exit 128")
    told = failure(bench)
    assert last_line(bench) == f"{REFERENCE}\n"
    assert told.cause == REFERENCE
    assert str(Cause.parse(told.cause)) == told.cause
    assert (told.exit_code, told.signal, told.program, told.ended_by) == (1, None, "git", EndedBy.ITSELF)
    assert PRIVATE in told.text


TEXTS = [
    ("No space left on device", "ENOSPC", "disk_full", Category.RESOURCE_EXHAUSTED),
    ("Disk quota exceeded", "EDQUOT", "disk_quota", Category.RESOURCE_EXHAUSTED),
    ("Cannot allocate memory", "ENOMEM", "out_of_memory", Category.RESOURCE_EXHAUSTED),
    ("Too many open files", "EMFILE", "process_limit", Category.RESOURCE_EXHAUSTED),
    ("Read-only file system", "EROFS", "read_only", Category.INVALID_REQUEST),
    ("Permission denied", "EACCES", "file_denied", Category.INVALID_REQUEST),
]


@pytest.mark.parametrize(("text", "code", "reason", "category"), TEXTS)
def test_errno_names_come_from_texts_of_the_c_locale(dash, text, code, reason, category):
    dash.cloned()
    says = f"warning: x: File too large\nfatal: cannot write {PRIVATE}: {text}\nerror: echo: File exists"
    controlled(dash, "pack-objects", f"printf '%s\\n' '{says}' >&2; exit 128")
    told = failure(dash)
    expected = f"stage=archive code={code} exit=128 program=git reason={reason} helper_exit=1\n"
    assert last_line(dash) == f"remote_workspace_capture_failed: {expected}"
    assert (told.errno, told.reason, classify(told).category) == (code, reason, category)


def test_a_name_that_looks_like_an_errno_is_none(dash):
    dash.cloned()
    controlled(dash, "pack-objects", "echo \"fatal: no 'a: No space left on device' here\" >&2; exit 128")
    assert failure(dash).cause == REFERENCE


@pytest.mark.parametrize(("number", "name"), [(9, "SIGKILL"), (11, "SIGSEGV"), (25, "SIGXFSZ")])
def test_a_signal_that_ends_git(bench, number, name):
    bench.cloned()
    controlled(bench, "pack-objects", f"kill -{number} $$")
    told = failure(bench)
    line = last_line(bench)
    assert line.startswith(f"remote_workspace_capture_failed: stage=archive signal={name} program=git")
    assert nested_cause(Completed(exit_code=1, signal=None, ended_by=EndedBy.ITSELF, stderr=line.encode())) is not None
    assert told.signal is None


def test_a_signal_that_ends_the_helper(bench):
    bench.cloned()
    controlled(bench, "pack-objects", "kill -TERM 0; exec sleep 2")
    told = failure(bench)
    assert (told.signal, told.exit_code, told.cause) == ("SIGTERM", None, None)


def test_git_is_missing(dash):
    dash.cloned()
    folder = dash.tmp / "bin"
    folder.mkdir()
    for program in ("env", "sed", "mkdir", "rm", "tail", "cat"):
        (folder / program).symlink_to(shutil.which(program))
    dash.sandbox.path = str(folder)
    dash.sandbox._argv = [shutil.which("dash")]
    told = failure(dash)
    assert told.cause == (
        "remote_workspace_capture_failed: stage=helper exit=127 program=git reason=program_missing helper_exit=1"
    )


def test_git_is_too_old(dash):
    dash.cloned()
    controlled(dash, "version", "echo git version 2.36.9; exit 0")
    assert failure(dash).reason == "git_too_old"


@pytest.mark.parametrize("path", ["gone", "../../escape", "link"])
def test_a_path_that_is_not_there_or_leads_outside(bench, path):
    bench.cloned()
    (bench.path.parent / "link").symlink_to(bench.tmp)
    (bench.tmp / "escape").mkdir()
    told = failure(bench, path=str(bench.path.parent / path))
    assert (told.reason, classify(told).category) == ("path_invalid", Category.INVALID_REQUEST)


def test_a_full_disk(dash):
    dash.cloned()
    home = dash.tmp / "sandboxes" / dash.sandbox.id / "scratch/copy_back"
    home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(home)], check=True)
    try:
        dash.write("big", os.urandom(3_000_000))
        told = failure(dash)
        assert (told.errno, told.reason) == ("ENOSPC", "disk_full")
        assert "stage=archive code=ENOSPC" in told.cause
    finally:
        subprocess.run(["umount", str(home)], check=True)


def test_a_writer_that_renames_under_the_capture(bench):
    bench.cloned()
    stop = threading.Event()

    def write():
        n = 0
        while not stop.is_set():
            for name in ("a", "b", "c"):
                n += 1
                temporary = bench.path / f"{name}.t"
                temporary.write_bytes(b"%d" % n * 500)
                temporary.rename(bench.path / name)
            time.sleep(0.005)

    writer = threading.Thread(target=write)
    writer.start()
    failed, taken = [], []
    try:
        for _ in range(5):
            try:
                taken.append(bench.capture(intact=False).files()["f"])
            except OperationFailed as exc:
                failed.append((exc.failure.reason, bench.leftovers()))
    finally:
        stop.set()
        writer.join()
    assert len(taken) >= 3
    assert set(taken) == {b"one\n"}
    assert failed in ([], [("files_changing", [])], [("files_changing", [])] * 2)


def test_a_vanished_file_is_tried_three_times(bench):
    bench.cloned()
    count = bench.tmp / "count"
    says = "fatal: unable to stat 'b\\\\x': No such file or directory"
    controlled(bench, "add", f'echo x >>{count}; [ $(wc -l <{count}) -ge 3 ] || {{ echo "{says}" >&2; exit 128; }}')
    bench.write("new", "n")
    bench.write("b\\x", "comes and goes")
    result = bench.capture()
    assert result.changes() == {"new": "A"}
    assert result.omitted == (("vanished", b"b\\x"),)
    assert count.read_text() == "x\n" * 3
    count.unlink()
    shutil.rmtree(bench.tmp / "controlled")
    controlled(bench, "add", f'echo x >>{count}; echo "{says}" >&2; exit 128')
    assert failure(bench).reason == "files_changing"
    assert count.read_text() == "x\n" * 3


def test_a_lost_blob_of_a_partial_clone_is_final(dash):
    dash.cloned()
    dash.request |= {"store": None, "baseline": None}
    dash.write("f", "staged, then lost")
    dash.git("add", "f")
    blob = dash.git("rev-parse", ":f")
    (dash.path / f".git/objects/{blob[:2]}/{blob[2:]}").unlink()
    dash.git("update-index", "--skip-worktree", "f")
    (dash.path / "f").unlink()
    assert failure(dash).reason == "object_corrupt"
    dash.git("config", "remote.origin.promisor", "true")
    told = failure(dash)
    assert (told.reason, classify(told).category) == ("promisor_object", Category.CORRUPT_DATA)


def test_the_deadline_and_a_cancel_leave_nothing(bench):
    bench.cloned()
    controlled(bench, "pack-objects", "exec sleep 60")
    with pytest.raises(OperationFailed) as caught:
        capture(bench.sandbox, CaptureRequest(path=str(bench.path), key="op1", **bench.request), Deadline.after(1.5))
    assert caught.value.failure.ended_by is EndedBy.DEADLINE
    assert bench.leftovers() == []
    cancel = threading.Event()
    threading.Timer(1.0, cancel.set).start()
    with pytest.raises(Cancelled):
        capture(
            bench.sandbox,
            CaptureRequest(path=str(bench.path), key="op1", **bench.request),
            Deadline.after(60, cancel),
        )
    assert bench.leftovers() == []


def test_what_dead_attempts_left_is_cleared_away(bench):
    bench.cloned()
    home = bench.tmp / "sandboxes" / bench.sandbox.id / "scratch/copy_back"
    for name in ("op1.dead", "op10.alive", "other.alive", "other.old"):
        (home / name / "work").mkdir(parents=True)
    day = time.time() - 2 * 86400
    os.utime(home / "other.old", (day, day))
    captured = bench.raw()
    assert bench.leftovers() == sorted(["op10.alive", "other.alive", captured.out_dir.split("/")[-2]])
    sweep(bench.sandbox, "op1", soon())
    assert bench.leftovers() == ["op10.alive", "other.alive"]


@pytest.fixture(params=sorted(SHELLS))
def ordinary(request):
    """A workspace of a user who may not read everything (root may), outside pytest's own private directory."""
    with tempfile.TemporaryDirectory(prefix="sandferry-capture-") as folder:
        made = Bench(Path(folder), request.param).cloned()
        made.sandbox._argv = ["setpriv", "--reuid=1234", "--regid=1234", "--clear-groups", *made.sandbox._argv]
        yield made


def test_unreadable_files_are_named_and_not_fatal(ordinary):
    ordinary.write("secret", "s")
    ordinary.write("f", "unreadable edit")
    ordinary.write("dir/x", "x")
    ordinary.write("good", "g")
    for path in (ordinary.tmp, *ordinary.tmp.rglob("*")):
        os.chown(path, 1234, 1234, follow_symlinks=False)
    for name in ("secret", "f", "dir"):
        (ordinary.path / name).chmod(0)
    captured = ordinary.raw()
    result = ordinary.taken_in(captured, ordinary.host)
    assert set(result.omitted) == {("unreadable", b"secret"), ("unreadable", b"f"), ("unreadable", b"dir")}
    assert result.changes() == {"good": "A"}
    assert result.part.head == ordinary.request["base"]


def test_refs_that_may_not_be_read_are_named(ordinary):
    ordinary.git("checkout", "-qb", "agent/work")
    ordinary.write("good", "g")
    ordinary.commit("on a branch")
    ordinary.git("checkout", "-q", "main")
    for path in (ordinary.tmp, *ordinary.tmp.rglob("*")):
        os.chown(path, 1234, 1234, follow_symlinks=False)
    (ordinary.path / ".git/refs/heads/agent").chmod(0)
    result = ordinary.taken_in(ordinary.raw(), ordinary.host)
    assert ("unreadable", b".git/refs") in result.omitted


def test_a_repository_of_another_user_is_captured(ordinary):
    ordinary.write("f", "two\n")
    for path in (ordinary.tmp, *(ordinary.tmp / "sandboxes").rglob("*")):
        if "workspace" not in str(path):
            os.chown(path, 1234, 1234, follow_symlinks=False)
    os.chown(ordinary.tmp / "sandboxes", 1234, 1234)
    ordinary.path.parent.chmod(0o755)
    assert ordinary.taken_in(ordinary.raw(), ordinary.host).changes() == {"f": "M"}


def test_a_cause_written_in_pieces_is_read_as_one(dash):
    dash.cloned()
    pieces = "printf 'remote_workspace_capture_failed: stage=' >&2; sleep 0.3; printf 'archive exit=128 ' >&2; "
    pieces += "sleep 0.3; printf 'program=git helper_exit=1\\n' >&2; exit 1"
    dash.sandbox._argv = ["sh", "-c", pieces]
    assert failure(dash).cause == REFERENCE


@pytest.mark.parametrize("output", ["", "captured", "captured\ncaptured\n", "captured\n"])
def test_an_answer_that_is_none_is_corrupt(dash, output):
    dash.cloned()
    dash.sandbox._argv = ["sh", "-c", f"printf '%s' '{output}'; mkdir -p \"$8/$9.${{10}}/out\""]
    if output == "captured\n":
        with pytest.raises((OperationFailed, OSError)):
            dash.raw()
        return
    told = failure(dash)
    assert (told.category, told.reason, told.cause) == (Category.CORRUPT_DATA, "archive_invalid", None)
