"""Of what a helper writes on stderr only a whole, valid cause is kept."""

import pytest

from worker.failures.model import EndedBy
from worker.sandboxes.base import Completed
from worker.snapshots.capture_failure import nested_cause

CAUSE = b"remote_workspace_capture_failed: stage=archive exit=128 program=git helper_exit=1\n"


@pytest.mark.parametrize(
    "stderr",
    [
        b"",
        CAUSE[:-1],
        b"x" + CAUSE,
        b"\n" + CAUSE,
        CAUSE + b"\n",
        CAUSE + CAUSE,
        CAUSE.replace(b"\n", b"\r\n"),
        CAUSE.replace(b"git", b"/usr/bin/git"),
        CAUSE.replace(b"git", b"ghp_token"),
        CAUSE.replace(b"helper_exit=1", b"helper_exit=1 path=x"),
        CAUSE.replace(b"exit=128", b"exit=1e3"),
        CAUSE.replace(b"stage=archive exit=128", b"exit=128 stage=archive"),
        CAUSE.replace(b"capture", b"archive"),
        CAUSE[:-1] + b"; " + CAUSE,
        b"remote_workspace_operation_failed: operation=capture exit=1; " + CAUSE,
        CAUSE.replace(b"git", "g\u00eft".encode()),
    ],
)
def test_what_is_no_cause_is_dropped_whole(stderr):
    assert nested_cause(Completed(exit_code=1, signal=None, ended_by=EndedBy.ITSELF, stderr=CAUSE)) is not None
    assert nested_cause(Completed(exit_code=1, signal=None, ended_by=EndedBy.ITSELF, stderr=stderr)) is None
