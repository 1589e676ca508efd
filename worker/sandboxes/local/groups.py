"""Process groups of this machine, read from ``/proc`` (Linux)."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_POLL = 0.01
"""Seconds between two looks at ``/proc``: a killed process is gone within a few milliseconds."""


def _processes() -> Iterator[Path]:
    return (entry for entry in Path("/proc").iterdir() if entry.name.isdigit())


def alive(pgid: int) -> bool:
    """A process of the group still runs. Zombies do not: nobody may be there to reap them."""
    for process in _processes():
        try:
            # The command's name may hold anything; the fields after its last ")" are fixed: state, ppid, pgrp.
            state, _, group = (process / "stat").read_bytes().rpartition(b")")[2].split()[:3]
        except OSError:
            continue
        if int(group) == pgid and state not in (b"Z", b"X"):
            return True
    return False


def born(pid: int) -> str | None:
    """When a process began, in the kernel's own count; ``None``: there is none. Tells a number that is used again."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    except OSError:
        return None


def send(pgid: int, number: signal.Signals) -> None:
    """Signal a group; one that is gone is no error."""
    with suppress(ProcessLookupError):
        os.killpg(pgid, number)


def gone_within(pgid: int, seconds: float) -> bool:
    """Wait until the group is gone, ``seconds`` at most; say whether it is."""
    end = time.monotonic() + seconds
    while alive(pgid):
        if time.monotonic() >= end:
            return False
        time.sleep(_POLL)
    return True


def kill_by_home(home: str) -> None:
    """Kill every process that has this ``HOME``: what commands of one sandbox left in the background."""
    wanted = f"HOME={home}".encode()
    for process in _processes():
        try:
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            continue
