"""The drivers' pure parts, by table."""

import io
import struct
import subprocess
import sys
import tarfile
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.failures.model import Failure, InvalidRequest, OperationFailed
from worker.sandboxes.base import LABEL_REQUEST, LABEL_RUN, Spec
from worker.sandboxes.docker.container import (
    CAPABILITIES,
    LABEL_CREATED,
    allowed_image,
    container_config,
    container_name,
    host_config,
)
from worker.sandboxes.docker.files import Owner, directory_archive, file_archive, spooled
from worker.sandboxes.docker.frames import FrameParser
from worker.sandboxes.environment import built_env
from worker.sandboxes.exits import decode_exit
from worker.sandboxes.facts import errno_name, plain_facts
from worker.sandboxes.labels import digest, matches
from worker.sandboxes.settings import DockerSettings

LABELS = {LABEL_RUN: "r", LABEL_REQUEST: "q"}


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        (0, (0, None)),
        (1, (1, None)),
        (124, (124, None)),
        (128, (128, None)),
        (129, (129, None)),  # git's code for wrong usage, not a hang-up
        (130, (None, "SIGINT")),
        (137, (None, "SIGKILL")),
        (139, (None, "SIGSEGV")),
        (143, (None, "SIGTERM")),
        (255, (255, None)),
        (-9, (None, "SIGKILL")),
        (-1, (None, "SIGHUP")),
    ],
)
def test_decode_exit(code, meaning):
    assert decode_exit(code) == meaning


class TestFrames:
    @given(
        frames=st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40)), max_size=12),
        cuts=st.lists(st.integers(min_value=1, max_value=30), min_size=1),
    )
    def test_however_the_bytes_arrive(self, frames, cuts):
        data = b"".join(struct.pack(">BxxxL", kind, len(body)) + body for kind, body in frames)
        parser, got, position, turn = FrameParser(), {1: b"", 2: b""}, 0, 0
        while position < len(data):
            size = cuts[turn % len(cuts)]
            for kind, piece in parser.feed(data[position : position + size]):
                got[kind] += piece
            position, turn = position + size, turn + 1
        assert got == {kind: b"".join(body for k, body in frames if k == kind) for kind in (1, 2)}
        assert not parser.inside

    @pytest.mark.parametrize("length", range(1, 11))
    def test_a_cut_is_seen(self, length):
        parser = FrameParser()
        list(parser.feed((struct.pack(">BxxxL", 1, 3) + b"abc")[:length]))
        assert parser.inside


class TestLabels:
    @pytest.mark.parametrize(
        ("found", "wanted", "verdict"),
        [
            (LABELS, LABELS, True),
            (LABELS, {}, True),
            ({**LABELS, "more": "x"}, LABELS, True),
            ({}, {}, False),
            ({LABEL_REQUEST: "q"}, {LABEL_REQUEST: "q"}, False),
            (LABELS, {LABEL_RUN: "other"}, False),
            (LABELS, {"more": "x"}, False),
        ],
    )
    def test_matches(self, found, wanted, verdict):
        assert matches(found, wanted) is verdict

    def test_one_name_per_create(self):
        assert container_name(LABELS) == container_name({**LABELS, "more": "x"})
        assert container_name(LABELS) != container_name({**LABELS, LABEL_REQUEST: "other"})
        # The border between the two counts.
        assert digest({LABEL_RUN: "a", LABEL_REQUEST: "bc"}) != digest({LABEL_RUN: "ab", LABEL_REQUEST: "c"})


class TestContainer:
    SETTINGS = DockerSettings(image="ours:1", allowed_images=("lang/python:3.*", "tools/*"))

    @pytest.mark.parametrize("image", [None, "ours:1", "lang/python:3.12", "tools/any:thing"])
    def test_images_that_are_allowed(self, image):
        assert allowed_image(Spec(image=image), self.SETTINGS) == (image or "ours:1")

    @pytest.mark.parametrize("image", ["", "ours:2", "lang/python:2.7", "evil/tools/x", "LANG/python:3.12", "postgres"])
    def test_images_that_are_not(self, image):
        if image:
            with pytest.raises(InvalidRequest, match="sandbox_spec_image: image_not_allowed"):
                allowed_image(Spec(image=image), self.SETTINGS)
        else:
            assert allowed_image(Spec(image=image), self.SETTINGS) == "ours:1"

    def test_limits(self):
        host = host_config(Spec(), self.SETTINGS)
        assert (host["Memory"], host["MemorySwap"], host["NanoCpus"], host["PidsLimit"]) == (
            2**31,
            2**31,
            2 * 10**9,
            512,
        )
        assert (host["CapDrop"], host["CapAdd"]) == (["ALL"], list(CAPABILITIES))
        assert host_config(Spec(strict=True), self.SETTINGS)["CapAdd"] == []

    def test_labels_say_when_it_was_made(self):
        labels = container_config(Spec(), LABELS, self.SETTINGS)["Labels"]
        assert labels.items() >= LABELS.items()
        assert int(labels[LABEL_CREATED]) == pytest.approx(time.time_ns(), abs=10e9)


class TestArchive:
    @pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 3 * 1024 * 1024])
    def test_of_a_file(self, size):
        with spooled([b"x" * size]) as spool:
            data = b"".join(file_archive("ü name", spool, Owner(1000, 1001), 0o640))
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            (member,) = tar.getmembers()
            assert (member.name, member.mode, member.uid, member.gid) == ("ü name", 0o640, 1000, 1001)
            assert tar.extractfile(member).read() == b"x" * size

    def test_of_directories(self):
        with tarfile.open(fileobj=io.BytesIO(directory_archive({"/a": 0o755, "/b/c": 0o700}, Owner(5, 6)))) as tar:
            found = [(member.name, member.isdir(), member.mode, member.uid) for member in tar.getmembers()]
        assert found == [("a", True, 0o755, 5), ("b/c", True, 0o700, 5)]


def test_later_layers_of_an_environment_win():
    env = built_env({"A": "1", "LC_ALL": "x"}, None, {"A": "2"})
    assert (env["A"], env["LC_ALL"], env["GIT_TERMINAL_PROMPT"]) == ("2", "x", "0")


class TestFacts:
    def test_errno_is_found_along_the_chain(self):
        inner, outer = OSError(28, "private"), ValueError("outer")
        outer.__context__ = inner
        assert errno_name(outer) == "ENOSPC"

    def test_a_chain_in_a_ring_ends(self):
        one, two = ValueError(), ValueError()
        one.__cause__, two.__cause__ = two, one
        assert errno_name(one) is None

    def test_text_stays_private(self):
        failure = plain_facts(PermissionError(13, "private text"), operation="o", stage="s", provider="p")
        assert (failure.exception, failure.errno, failure.provider) == ("PermissionError", "EACCES", "p")
        assert "private text" in failure.text
        assert "private text" not in repr(failure)

    def test_facts_that_are_known_already_are_kept(self):
        known = Failure(operation="o", stage="s", reason="known")
        assert plain_facts(OperationFailed(known), operation="x", stage="y", provider="z") is known


def test_the_registry_loads_no_sdk():
    script = "import sys, worker.sandboxes.registry; print('docker' in sys.modules, 'pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
