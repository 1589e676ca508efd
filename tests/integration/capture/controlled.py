"""A git that fails when it is told to, and the failure that must come of it."""

import shutil

import pytest

from tests.integration.capture.bench import state_of
from worker.failures.model import OperationFailed
from worker.sandboxes.environment import SEARCH_PATH

PRIVATE = "/home/acme/secret-project/.git/objects"


def controlled(bench, at, does):
    """A git that ``does`` something when its subcommand is ``at`` (``*``: any), and is git otherwise."""
    folder = bench.tmp / "controlled"
    folder.mkdir()
    (folder / "git").write_text(
        f'#!/bin/sh\ncase " $* " in *" {at} "*) {does} ;; esac\nexec {shutil.which("git")} "$@"\n'
        if at != "*"
        else f"#!/bin/sh\n{does}\n"
    )
    (folder / "git").chmod(0o755)
    bench.sandbox.path = f"{folder}:{bench.sandbox.path or SEARCH_PATH}"


def failure(bench, **options):
    before = state_of(bench.path)
    with pytest.raises(OperationFailed) as caught:
        bench.raw(**options)
    assert state_of(bench.path) == before
    assert bench.leftovers() == []
    told = caught.value.failure
    assert (told.operation, told.stage, told.provider) == ("copy_back", "capture", "local")
    assert PRIVATE not in repr(told)
    return told


def last_line(bench):
    """What the helper wrote on stderr: one line, whole."""
    captures = [done for done in bench.sandbox.runs if b"remote_workspace" in done.stderr]
    return captures[-1].stderr.decode()
