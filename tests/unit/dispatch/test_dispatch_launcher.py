"""The launcher in the shells that images have, and what the worker reads of its answers."""

import hashlib
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.dispatch import launcher
from tests.rig.tools import tool
from tests.rig.waiting import promptly, until
from worker.failures.reasons import REASONS

SHELLS = {"dash": ["dash"], "bash": ["bash"], "busybox": ["busybox", "sh"]}
EMPTY = hashlib.sha256(b"").hexdigest()
NONCE = "n" * 32


class Box:
    """A directory, a shell, and a package without files."""

    def __init__(self, root: Path, shell: list[str]) -> None:
        self.root, self.shell = root, shell
        (root / "package").mkdir()
        (root / "package/sums").touch()

    def ask(
        self, mode: str, *args: str, generation: int = 1, nonce: str = NONCE, theirs: dict[str, str] | None = None,
        **env: str,
    ) -> launcher.Answer | None:  # fmt: skip
        argv = launcher.command(mode, f"{self.root}/call", nonce, generation, *args)
        done = subprocess.run(
            [*self.shell, *argv[1:]], env={"PATH": os.environ["PATH"], "LC_ALL": "C", **env, **(theirs or {})},
            capture_output=True, timeout=30, check=False, input=b"",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return launcher.read_answer(done.stdout)

    def call(
        self, mode: str, *argv: str, staged="no", durable="no", seconds=5, limit=100, **more
    ) -> launcher.Answer | None:
        fixed = (f"{self.root}/package", EMPTY, durable, staged, str(self.root), str(seconds), str(limit), "50")
        return self.ask(mode, *fixed, *argv, SANDFERRY_INPUT='{"a":1}', **more)


@pytest.fixture(params=sorted(SHELLS))
def box(request, tmp_path) -> Box:
    shell = SHELLS[request.param]
    if shutil.which(shell[0]) is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{shell[0]} is missing")
        pytest.skip(f"{shell[0]} is missing")
    return Box(tmp_path, shell)


def test_a_tool_runs_once_however_often_it_is_started(box: Box):
    for _ in range(3):
        answer = box.call("run", "sh", "-c", "cat; echo >>count; echo bad >&2; exit 3")
        receipt = answer.receipt
        assert (receipt.exit_code, receipt.stdout, receipt.stderr) == (3, b'{"a":1}', b"bad\n")
    assert (box.root / "count").read_text() == "\n"


def test_the_input_is_not_in_the_environment_of_the_tool(box: Box):
    answer = box.call("run", "env")
    assert b"SANDFERRY_INPUT" not in answer.receipt.stdout


def test_no_variable_of_the_tool_is_touched(box: Box):
    """The launcher has variables as any script has; the sandbox and the call may have set any of these names."""
    text = launcher.script()
    names = set(re.findall(r"\$\{?([A-Za-z][A-Za-z0-9_]*)", text)) | set(re.findall(r"\b([a-z_]+)=", text))
    plain = {name.removeprefix("sf_") for name in names} | {"mode", "limit", "package", "state", "count", "pid"}
    theirs = {name: "theirs" for name in plain if name.islower()}
    answer = box.call("run", "env", limit=100_000, theirs=theirs)
    got = dict(line.split("=", 1) for line in answer.receipt.stdout.decode().splitlines() if "=" in line)
    assert {name: got.get(name) for name in theirs} == theirs
    assert not [name for name in got if name.startswith(("sf_", "SANDFERRY_"))]


def test_a_path_of_its_own_is_the_tools_only(box: Box):
    answer = box.call("run", "/bin/sh", "-c", 'echo "$PATH"', SANDFERRY_PATH="/nowhere")
    assert answer.receipt.stdout == b"/nowhere\n"


def test_a_look_closes_a_staged_call_that_was_not_begun(box: Box):
    assert box.call("stage", "touch", "ran").done
    assert box.ask("look").state == "void"
    assert box.call("run", "touch", "ran", staged="yes", durable="yes").state == "void"
    assert not (box.root / "ran").exists()
    assert box.call("stage", "touch", "ran", generation=2).done
    assert box.call("run", "touch", "ran", staged="yes", durable="yes", generation=2).state == "receipt"
    assert (box.root / "ran").exists()


def test_a_claim_that_was_taken_away_is_no_proof_that_nothing_ran(box: Box):
    take = "rm ../call/claim.1; echo >>count"
    fixed = (f"{box.root}/package", EMPTY, "no", "no", f"{box.root}/package", "5", "100", "50")
    script = f"cd {box.root}/package && {take}; touch ../begun; while [ -e ../begun ]; do sleep 0.05; done"
    argv = launcher.command("run", f"{box.root}/call", NONCE, 1, *fixed, "sh", "-c", script)
    env = {"PATH": os.environ["PATH"], "SANDFERRY_INPUT": "{}"}
    running = subprocess.Popen([*box.shell, *argv[1:]], env=env, stdout=subprocess.PIPE)
    until((box.root / "begun").exists, what="the tool has taken its claim away")

    assert box.ask("look").state == "dead"

    (box.root / "begun").unlink()
    assert launcher.read_answer(running.communicate(timeout=20)[0]).state in {"dead", "nothing"}
    assert box.ask("look").state in {"dead", "nothing"}
    assert (box.root / "package/count").read_text() == "\n"


def test_a_look_at_nothing_closes_nothing(box: Box):
    assert box.ask("look").state == "nothing"
    assert box.call("run", "true").state == "receipt"


def test_a_claim_of_somebody_else_is_foreign(box: Box):
    assert box.call("run", "true").state == "receipt"
    assert box.ask("look", nonce="f" * 32).state == "foreign"
    assert box.ask("look", nonce="-").state == "receipt"


def test_a_dead_supervisor_is_no_receipt(box: Box):
    place = box.root / "call" / f"{NONCE}.1"
    place.mkdir(parents=True)
    (place / "input").touch()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    for identity in (f"{os.getpid()}:1:{boot}", f"{os.getpid()}:{born(os.getpid())}:another-boot", "999999999:1:x"):
        claim = box.root / "call" / "claim.1"
        claim.unlink(missing_ok=True)
        claim.symlink_to(f"{NONCE}:{identity}")
        assert box.ask("look").state == "dead"
    claim.unlink()
    claim.symlink_to(f"{NONCE}:{os.getpid()}:{born(os.getpid())}:{boot}")
    assert box.ask("look").state == "running"


def born(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def test_a_timeout_is_said_and_leaves_no_process(box: Box):
    began = time.monotonic()
    answer = box.call("run", "sh", "-c", "trap '' TERM; (sleep 41.5; :) & echo a; wait; sleep 41.5", seconds=1)
    assert (answer.receipt.ended, answer.receipt.stdout, answer.receipt.signal) == ("timeout", b"a\n", "SIGKILL")
    assert time.monotonic() - began < promptly(10)
    assert sleepers("41.5") == []


def sleepers(seconds: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == f"sleep\0{seconds}\0".encode():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


def test_no_timer_is_left_behind(box: Box):
    assert box.call("run", "true", seconds=4321).state == "receipt"
    end = time.monotonic() + 5
    while sleepers("4321") and time.monotonic() < end:
        time.sleep(0.02)
    assert sleepers("4321") == []


def test_a_stopped_tool_says_so(box: Box):
    argv = launcher.command(
        "run", f"{box.root}/call", NONCE, 1, f"{box.root}/package", EMPTY, "no", "no", str(box.root), "60", "100", "50",
        "sh", "-c", "touch begun; sleep 42.5",
    )  # fmt: skip
    env = {"PATH": os.environ["PATH"], "SANDFERRY_INPUT": "{}"}
    running = subprocess.Popen([*box.shell, *argv[1:]], env=env, stdout=subprocess.PIPE)
    end = time.monotonic() + 10
    while not (box.root / "begun").exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    answer = box.ask("stop")
    assert answer.receipt.ended == "cancelled"
    assert launcher.read_answer(running.communicate(timeout=10)[0]).receipt.ended == "cancelled"
    assert sleepers("42.5") == []


def test_a_tool_that_has_not_said_who_it_is_is_stopped_when_it_has(box: Box):
    place = box.root / "call" / f"{NONCE}.1"
    place.mkdir(parents=True)
    supervisor = subprocess.Popen(["sleep", "43.5"])
    tool = subprocess.Popen(["sleep", "43.5"], start_new_session=True)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    (box.root / "call/claim.1").symlink_to(f"{NONCE}:{supervisor.pid}:{born(supervisor.pid)}:{boot}")
    argv = launcher.command("stop", f"{box.root}/call", NONCE, 1)
    stopping = subprocess.Popen([*box.shell, *argv[1:]], env={"PATH": os.environ["PATH"]}, stdout=subprocess.PIPE)
    with pytest.raises(subprocess.TimeoutExpired):
        stopping.wait(1.5)  # longer than it used to wait for the tool's name
    (place / "tool").symlink_to(f"{tool.pid}:{born(tool.pid)}:{boot}")
    assert tool.wait(timeout=10) == -15
    supervisor.kill()
    supervisor.wait()
    assert launcher.read_answer(stopping.communicate(timeout=10)[0]).state == "dead"


def test_the_input_is_gone_with_the_call(box: Box):
    assert box.call("run", "cat").receipt.stdout == b'{"a":1}'
    until(lambda: not list(box.root.glob("call/*/input")), what="the input is removed")


def kept(box: Box) -> list[Path]:
    return [path for path in box.root.glob("dispatch/*/*/out") if path.stat().st_size]


def test_older_calls_keep_how_they_ended_and_no_output(box: Box):
    """The receipt of a call is for ever: it is what keeps the call from running again."""
    script = launcher.script().replace("sf_kept=100 ", "sf_kept=3 ")
    assert script != launcher.script()

    def ask(mode: str, number: int, *args: str) -> launcher.Answer | None:
        argv = ["sh", "-c", script, "sandferry-launcher", mode, script, f"{box.root}/dispatch/{number:032}", NONCE, "1"]
        env = {"PATH": os.environ["PATH"], "SANDFERRY_INPUT": "{}"}
        done = subprocess.run([*box.shell, *argv[1:], *args], env=env, capture_output=True, check=True, timeout=30)
        return launcher.read_answer(done.stdout)

    fixed = (f"{box.root}/package", EMPTY, "no", "no", str(box.root), "5", "100", "50")
    for number in range(8):
        stem = f"{box.root}/dispatch/{number:032}"
        ask(
            "run",
            number,
            *fixed,
            "sh",
            "-c",
            f"echo ran-{number}; echo bad >&2; echo >>{box.root}/count; exit {number}",
        )
        os.utime(stem, (number, number))  # the order must not hang on the clock's tick
    ask("run", 99, *fixed, "true")
    until(lambda: len(kept(box)) == 2, what="the older outputs are let go")  # the newest call printed nothing

    receipts = [ask("look", number).receipt for number in range(8)]
    assert [receipt.exit_code for receipt in receipts] == list(range(8))
    assert [receipt.stdout for receipt in receipts] == [b""] * 6 + [b"ran-6\n", b"ran-7\n"]
    assert [receipt.truncated for receipt in receipts] == [True] * 6 + [False] * 2
    assert [receipt.stderr for receipt in receipts] == [b""] * 6 + [b"bad\n"] * 2
    again = ask("run", 0, *fixed, "sh", "-c", f"echo >>{box.root}/count")
    assert (again.receipt.exit_code, again.receipt.stdout) == (0, b"")
    assert (box.root / "count").read_text() == "\n" * 8


@pytest.mark.parametrize(
    ("size", "kept", "cut"), [(99, 99, False), (100, 100, False), (101, 100, True), (9**6, 100, True)]
)
def test_output_is_bounded(box: Box, size, kept, cut):
    receipt = box.call("run", "head", "-c", str(size), "/dev/zero").receipt
    assert (len(receipt.stdout), receipt.truncated, receipt.exit_code) == (kept, cut, 0)


def test_a_package_is_asked_for_unpacked_and_checked(box: Box):
    package = tool("echo packaged")
    sums = package.descriptor.sums
    summed = hashlib.sha256(sums.encode()).hexdigest()
    place = f"{box.root}/tools/{package.descriptor.digest}"
    fixed = (place, summed, "no", "no", str(box.root), "5", "100", "50")
    assert box.ask("run", *fixed, f"{place}/files/run", SANDFERRY_INPUT="{}").need_package

    for spoil in (False, True):
        if spoil:
            Path(f"{place}/files/run").chmod(0o755)
            Path(f"{place}/files/run").write_text("#!/bin/sh\necho spoilt")
            assert box.ask("run", *fixed, f"{place}/files/run", SANDFERRY_INPUT="{}", generation=7).need_package
        archive = box.root / "a.tar"
        archive.write_bytes(package.archive)
        argv = launcher.command("unpack", f"{box.root}/call", NONCE, 1, place, summed, str(archive))
        done = subprocess.run([*box.shell, *argv[1:]], input=sums.encode(), capture_output=True, check=True)
        assert launcher.read_answer(done.stdout).done
    assert box.ask("run", *fixed, f"{place}/files/run", SANDFERRY_INPUT="{}").receipt.stdout == b"packaged\n"
    assert [path.name for path in (box.root / "tools").iterdir()] == [package.descriptor.digest]


def test_a_wrong_archive_is_refused(box: Box):
    archive = box.root / "a.tar"
    archive.write_bytes(b"no tar")
    answer = box.ask("unpack", f"{box.root}/tools/x", EMPTY, str(archive))
    assert answer.refused in {"archive_invalid", "digest_mismatch"}
    assert not (box.root / "tools/x").exists()


def test_the_words_of_the_launcher_are_ours():
    assert launcher.REFUSALS <= REASONS
    assert set(re.findall(r"refuse ([a-z_]+)", launcher.script())) == launcher.REFUSALS


GOOD = b"state receipt\ngeneration 1\nreceipt 0:itself:none:2:no:1:no\n\nabc"


def test_a_good_answer_is_read():
    receipt = launcher.read_answer(GOOD).receipt
    assert (receipt.stdout, receipt.stderr, receipt.exit_code, receipt.ended) == (b"ab", b"c", 0, "itself")


@pytest.mark.parametrize("cut", range(len(GOOD)))
def test_a_cut_answer_is_none(cut):
    assert launcher.read_answer(GOOD[:cut]) is None


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"\n", b"state receipt\n", b"state running\n", b"state gone\ngeneration 1\n", b"refused tea_break\n",
        b"refused disk_full\nstate running\n", GOOD + b"d", GOOD.replace(b"0:itself", b"256:itself"),
        GOOD.replace(b"itself", b"ghs_token"), GOOD.replace(b"generation 1", b"generation 01"),
        b"need everything\n", b"staged no\n", b"state running\ngeneration 1",
    ],
)  # fmt: skip
def test_what_is_no_answer_is_none(answer):
    assert launcher.read_answer(answer) is None


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_fault(data):
    answer = launcher.read_answer(data)
    assert answer is None or answer.refused in launcher.REFUSALS or answer.state or answer.need_package or answer.done


def test_the_entrypoint_is_made_absolute():
    assert launcher.entry(["python3", "./a/b.py", "../x", "."], "/p") == ["python3", "/p/files/a/b.py", "../x", "."]
