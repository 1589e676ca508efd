"""What the tests of all drivers share."""

import time

from worker.sandboxes.deadline import Deadline

_SCAN = """
for process in /proc/[0-9]*; do
  [ "${process#/proc/}" = "$$" ] && continue
  line=$(tr '\\0' ' ' 2>/dev/null <"$process/cmdline") || continue
  case $line in *SCANNER*) ;; *"$1"*) echo "$line" ;; esac
done
"""


def soon(seconds=30.0):
    return Deadline.after(seconds)


def running(sandbox, text):
    """Command lines in the sandbox that hold ``text``; the scanner's own are left out."""
    done = sandbox.run(["sh", "-c", _SCAN, "SCANNER", text], deadline=soon())
    assert done.ok, done
    return done.stdout.decode()


def wait_for(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "the condition did not come true"
        time.sleep(0.02)
    return value
