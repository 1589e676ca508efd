import subprocess
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.failures.model import OperationFailed
from worker.imports.header import MAX_HEADER, parse_header
from worker.imports.refnames import clashing, valid_ref

A, B = "a" * 40, "b" * 40
SNAPSHOT = f"{A} refs/sandferry/snapshot\n"
V2 = "# v2 git bundle\n"
V3 = "# v3 git bundle\n@object-format=sha256\n"


def test_a_whole_header() -> None:
    text = f"{V2}-{B} a subject\n-{A}\n{SNAPSHOT}{B} refs/sandferry/heads/a/b\n{B} refs/sandferry/stash/0\n\nPACK..."
    header = parse_header(text.encode())
    assert header.object_format == "sha1"
    assert header.prerequisites == (B, A)
    assert dict(header.refs) == {
        "refs/sandferry/snapshot": A,
        "refs/sandferry/heads/a/b": B,
        "refs/sandferry/stash/0": B,
    }
    assert text[header.pack_offset :] == "PACK..."


def test_sha256() -> None:
    oid = "c" * 64
    header = parse_header(f"{V3}{oid} refs/sandferry/snapshot\n\n".encode())
    assert (header.object_format, header.refs["refs/sandferry/snapshot"]) == ("sha256", oid)


def test_names_that_are_not_utf8_come_back_as_they_were() -> None:
    header = parse_header(f"{V2}{SNAPSHOT}{B} refs/sandferry/heads/".encode() + b"\xff\n\n")
    assert [name.encode("utf-8", "surrogateescape")[-1:] for name in header.refs] == [b"t", b"\xff"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "bundle_header"),
        ("# v1 git bundle\n" + SNAPSHOT + "\n", "bundle_header"),
        ("# v3 git bundle\n" + SNAPSHOT + "\n", "bundle_header"),
        ("# v3 git bundle\n@filter=blob:none\n" + SNAPSHOT + "\n", "bundle_header"),
        (V3.replace("256", "512") + SNAPSHOT + "\n", "bundle_header"),
        (V3 + "@filter=blob:none\n" + SNAPSHOT + "\n", "bundle_header"),
        (V3 + SNAPSHOT + "\n", "bundle_header"),
        (V2 + SNAPSHOT, "bundle_truncated"),
        (V2 + "x" * (MAX_HEADER + 10), "too_large"),
        (V2 + "\n", "ref_missing"),
        (V2 + f"{A} refs/sandferry/head\n\n", "ref_missing"),
        (V2 + SNAPSHOT + SNAPSHOT + "\n", "bundle_header"),
        (V2 + SNAPSHOT + f"-{B}\n\n", "bundle_header"),
        (V2 + f"-{B[1:]}\n" + SNAPSHOT + "\n", "bundle_header"),
        (V2 + f"-{B.upper()}\n" + SNAPSHOT + "\n", "bundle_header"),
        (V2 + SNAPSHOT + f"{A} \n\n", "bundle_header"),
        (V2 + SNAPSHOT + f"{A}\trefs/sandferry/head\n\n", "bundle_header"),
        (V2 + SNAPSHOT + f"{A} refs/heads/main\n\n", "ref_refused"),
        (V2 + SNAPSHOT + f"{A} HEAD\n\n", "ref_refused"),
        (V2 + SNAPSHOT + f"{A} refs/sandferry/other\n\n", "ref_refused"),
        (V2 + SNAPSHOT + f"{A} refs/sandferry/heads\n\n", "ref_refused"),
        (V2 + SNAPSHOT + f"{A} refs/sandferry/heads/\n\n", "ref_refused"),
        (V2 + SNAPSHOT + f"{A} refs/sandferry/heads/../x\n\n", "ref_refused"),
        (V2 + SNAPSHOT + f"{A} refs/sandferry/heads/a.lock\n\n", "ref_refused"),
        (V2 + SNAPSHOT + f"{A} refs/sandferry/stash/01\n\n", "ref_refused"),
        (V2 + SNAPSHOT + f"{A} refs/sandferry/stash/x\n\n", "ref_refused"),
        (V2 + SNAPSHOT + f"{A} refs/sandferry/heads/a\n{A} refs/sandferry/heads/a/b\n\n", "ref_refused"),
    ],
)
def test_headers_that_are_refused(text: str, reason: str) -> None:
    with pytest.raises(OperationFailed) as caught:
        parse_header(text.encode())
    assert (caught.value.failure.stage, caught.value.failure.reason) == ("parse", reason)


@given(st.binary(max_size=400))
def test_garbage_never_raises_anything_else(data: bytes) -> None:
    for start in (b"", V2.encode(), V3.encode(), V2.encode() + SNAPSHOT.encode()):
        with suppress(OperationFailed):
            assert "refs/sandferry/snapshot" in parse_header(start + data).refs


@given(
    st.lists(
        st.sampled_from([b"a", b"/", b".", b"..", b".lock", b"@", b"{", b"~", b" ", b"\\", b"-", b"\xc3\xa9", b"*"]),
        max_size=7,
    )
)
def test_names_are_judged_as_git_judges_them(parts: list[bytes]) -> None:
    name = b"refs/" + b"".join(parts)
    git = subprocess.run(["git", "check-ref-format", name], check=False, capture_output=True)
    assert valid_ref(name) == (git.returncode == 0)


@pytest.mark.parametrize("name", [b"main", b"refs/" + b"x" * 251, b"refs/" + b"x/" * 600 + b"y"])
def test_names_that_no_file_can_hold(name: bytes) -> None:
    assert not valid_ref(name)


@pytest.mark.parametrize(
    ("names", "clash"), [({"r/a", "r/b"}, False), ({"r/a", "r/ab"}, False), ({"r/a", "r/a/b"}, True), (set(), False)]
)
def test_names_side_by_side(names: set[str], clash: bool) -> None:
    assert clashing(frozenset(names)) is clash
