"""A Docker engine for the tests, with the images they need.

    python -m tests.rig.docker_engine -- pytest -m docker

runs a command with ``SANDFERRY_TEST_DOCKER`` set; without a command it prints the export and stays until its
input ends. An engine named by ``SANDFERRY_TEST_DOCKER`` or ``DOCKER_HOST`` is used as it is. Otherwise one is
started (root and the ``docker.io`` package needed) on a socket of its own, and stopped at the end; it touches
neither bridges nor firewall, so containers use the host's network.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

IMAGE = "sandferry-test:git"
BUSYBOX_IMAGE = "sandferry-test-busybox:latest"
VARIABLE = "SANDFERRY_TEST_DOCKER"
_START = 30.0
"""Seconds a fresh dockerd may take to answer; it needs about two."""
_BUILD = 600.0
"""Seconds the images may take; debootstrap needs about forty."""


class Unavailable(Exception):  # noqa: N818 - it is no fault of the tests
    """There is no engine and none can be started; says what to do."""


@contextmanager
def engine() -> Iterator[str]:
    """The address of an engine that answers and has the images."""
    url = os.environ.get(VARIABLE) or os.environ.get("DOCKER_HOST")
    if url:
        _require_answer(url, 5.0)
        build_images(url)
        yield url
        return
    with _started() as url:
        build_images(url)
        yield url


def build_images(url: str) -> None:
    """Build :data:`IMAGE` and :data:`BUSYBOX_IMAGE` unless the engine has them."""
    script = Path(__file__).with_name("git_image.sh")
    done = subprocess.run(
        ["sh", str(script), IMAGE],
        env={**os.environ, "DOCKER_HOST": url},
        capture_output=True,
        text=True,
        timeout=_BUILD,
        check=False,
    )
    if done.returncode:
        raise Unavailable(f"the test images could not be built: {done.stderr[-500:]}")


@contextmanager
def _started() -> Iterator[str]:
    if os.geteuid() != 0 or not shutil.which("dockerd"):
        raise Unavailable(f"set {VARIABLE} to an engine's address, or install docker.io and run as root")
    with tempfile.TemporaryDirectory(prefix="sandferry-dockerd-", ignore_cleanup_errors=True) as directory:
        home = Path(directory)
        url = f"unix://{home}/docker.sock"
        with (home / "log").open("wb") as log:
            daemon = subprocess.Popen(_dockerd(home, url), stdout=log, stderr=log, start_new_session=True)
        try:
            _require_answer(url, _START, daemon)
            yield url
        finally:
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(daemon.pid, signal.SIGKILL)
                daemon.wait()
            _unmount(home)


def _unmount(home: Path) -> None:
    """What dockerd leaves mounted: the name space of the host's network, once a container used it."""
    places = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for place in sorted((place for place in places if place.startswith(f"{home}/")), reverse=True):
        subprocess.run(["umount", place], check=False, timeout=30)


def _dockerd(home: Path, url: str) -> list[str]:
    places = [f"--data-root={home}/data", f"--exec-root={home}/exec", f"--pidfile={home}/pid"]
    return ["dockerd", f"--host={url}", *places, "--iptables=false", "--bridge=none", "--storage-driver=overlay2"]


def _require_answer(url: str, seconds: float, daemon: subprocess.Popen[bytes] | None = None) -> None:
    end = time.monotonic() + seconds
    while subprocess.run(["docker", "-H", url, "version"], capture_output=True, timeout=30, check=False).returncode:
        if time.monotonic() > end or (daemon is not None and daemon.poll() is not None):
            raise Unavailable(f"no Docker engine answers; check {VARIABLE}, or the log of dockerd")
        time.sleep(0.2)


def main(argv: list[str]) -> int:
    """Run a command beside an engine, or hold the engine until the input ends.

    ``--optional`` runs the command without an engine where there is none, except in CI.
    """
    optional = argv[:1] == ["--optional"] and os.environ.get("CI") != "true"
    command = argv[argv.index("--") + 1 :] if "--" in argv else argv
    try:
        with engine() as url:
            if command:
                return subprocess.run(command, env={**os.environ, VARIABLE: url}, check=False).returncode
            print(f"export {VARIABLE}={url}", flush=True)
            sys.stdin.read()
    except Unavailable as exc:
        if not optional:
            print(exc, file=sys.stderr)
            return 1
        print(f"==> without Docker: {exc}", flush=True)
        return subprocess.run(command, check=False).returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
