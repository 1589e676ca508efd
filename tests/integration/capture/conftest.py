"""A workspace in each shell; busybox comes with nothing else than git."""

import shutil
import subprocess

import pytest

pytest.register_assert_rewrite("tests.integration.capture.bench", "tests.integration.capture.controlled")

from tests.integration.capture.bench import SHELLS, Bench  # noqa: E402 - rewritten first


@pytest.fixture(scope="session")
def busybox_only(tmp_path_factory):
    """A PATH of busybox's own programs and git."""
    folder = tmp_path_factory.mktemp("busybox")
    for applet in subprocess.run(["busybox", "--list"], capture_output=True, text=True, check=True).stdout.split():
        (folder / applet).symlink_to(shutil.which("busybox"))
    for program in ("git", "busybox"):
        (folder / program).symlink_to(shutil.which(program))
    return str(folder)


@pytest.fixture(params=sorted(SHELLS))
def bench(request, tmp_path):
    """Each test in each shell."""
    made = Bench(tmp_path, request.param)
    if request.param == "busybox":
        made.sandbox.path = request.getfixturevalue("busybox_only")
    return made


@pytest.fixture
def dash(tmp_path):
    """Where the shell does not matter."""
    return Bench(tmp_path)
