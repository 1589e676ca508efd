"""The local driver's files: removal as another user, and paths that lead out."""

import json
import re
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from worker.failures.model import InvalidRequest, OperationFailed
from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN, Spec
from worker.sandboxes.deadline import Deadline
from worker.sandboxes.local.provider import LocalProvider

ROOT = Path(__file__).parents[3]
LABELS = {LABEL_RUN: "r", LABEL_REQUEST: "q"}


def soon():
    return Deadline.after(20)


@pytest.fixture
def provider(tmp_path):
    return LocalProvider(tmp_path / "root")


@pytest.fixture
def sandbox(provider):
    return provider.create(Spec(ttl=60), LABELS, deadline=soon())


def test_everything_is_private(sandbox, tmp_path):
    for path in (tmp_path / "root", Path(sandbox.layout.workspace).parent, Path(sandbox.layout.scratch)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    meta = Path(sandbox.layout.workspace).parent / "meta.json"
    assert stat.S_IMODE(meta.stat().st_mode) == 0o600
    assert json.loads(meta.read_bytes())["labels"] == LABELS


def test_ids_cannot_be_guessed(provider, sandbox):
    other = provider.create(Spec(), {**LABELS, LABEL_REQUEST: "other"}, deadline=soon())
    assert re.fullmatch("local-[0-9a-f]{32}", other.id)
    assert sandbox.id[:14] != other.id[:14]


@pytest.mark.parametrize("planted", ["link", "absolute", "up"])
def test_paths_that_lead_out_are_refused(sandbox, tmp_path, planted):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("kept")
    (Path(sandbox.layout.workspace) / "link").symlink_to(outside)
    path = {
        "link": f"{sandbox.layout.workspace}/link/secret",
        "absolute": str(outside / "secret"),
        "up": f"{sandbox.layout.workspace}/../../../outside/secret",
    }[planted]
    with pytest.raises(InvalidRequest, match="path: outside_sandbox"):
        sandbox.write(path, b"changed", deadline=soon())
    with pytest.raises(InvalidRequest, match="path: outside_sandbox"):
        sandbox.read(path, deadline=soon())
    assert (outside / "secret").read_text() == "kept"


def test_a_link_in_the_tree_is_not_followed_by_release(sandbox, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o750)
    (outside / "kept").write_text("kept")
    (Path(sandbox.layout.workspace) / "link").symlink_to(outside)
    sandbox.release(deadline=soon())
    assert (outside / "kept").read_text() == "kept"
    assert stat.S_IMODE(outside.stat().st_mode) == 0o750
    assert list((tmp_path / "root").iterdir()) == []


def test_a_damaged_meta_is_a_lost_sandbox(provider, sandbox):
    (Path(sandbox.layout.workspace).parent / "meta.json").write_text("{}")
    assert provider.find(LABELS, deadline=soon()) == []
    with pytest.raises(OperationFailed):
        provider.connect(sandbox.id, LABELS, deadline=soon())


AS_NOBODY = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from worker.sandboxes.local.tree import remove
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
tree = Path(sys.argv[1])
(tree / "a" / "b").mkdir(parents=True)
(tree / "a" / "b" / "f").write_text("x")
(tree / "a" / "b").chmod(0o000)
(tree / "a").chmod(0o500)
remove(tree)
print(tree.exists())
"""


def test_directories_closed_to_their_owner_are_removed():
    with tempfile.TemporaryDirectory() as directory:  # pytest's own is closed to others, and shall stay so
        Path(directory).chmod(0o777)
        argv = [sys.executable, "-c", AS_NOBODY, f"{directory}/tree", str(ROOT)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False\n", "")
