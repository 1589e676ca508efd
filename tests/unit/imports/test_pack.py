import io
import os
import subprocess
import zlib
from hashlib import sha1
from pathlib import Path

import pytest

from worker.failures.model import OperationFailed
from worker.imports.limits import Limits
from worker.imports.pack import PackSize, measure


def pack(*entries: tuple[int, int, bytes], count: int | None = None) -> bytes:
    """A pack of (type, declared size, content)."""
    data = b"PACK\0\0\0\2" + (len(entries) if count is None else count).to_bytes(4, "big")
    for kind, declared, content in entries:
        size, head = declared >> 4, [(kind << 4) | (declared & 15)]
        while size:
            head[-1] |= 0x80
            head.append(size & 0x7F)
            size >>= 7
        data += bytes(head) + (b"\1" * 20 if kind == 7 else b"") + zlib.compress(content)
    return data + sha1(data).digest()


def outcome(data: bytes, **limits: int) -> PackSize | str | None:
    try:
        return measure(io.BytesIO(data), "sha1", Limits(**limits))
    except OperationFailed as exc:
        return exc.failure.reason


def test_a_pack_of_git(tmp_path: Path) -> None:
    def run(*args: str, stdin: bytes = b"") -> bytes:
        return subprocess.run(["git", *args], cwd=tmp_path, input=stdin, check=True, capture_output=True).stdout

    run("init", "-q")
    text = os.urandom(100_000).hex().encode()
    blobs = [text, text + b"more", b"", b"x" * 1_000_000]
    oids = [run("hash-object", "-w", "--stdin", stdin=blob).strip() for blob in blobs]
    for options in ((), ("--delta-base-offset",)):
        made = run("pack-objects", "-q", "--stdout", "--window=10", *options, stdin=b"\n".join(oids) + b"\n")
        assert len(made) < 180_000  # the second is a delta of the first
        assert outcome(made) == PackSize(4, sum(map(len, blobs)))


@pytest.mark.parametrize(
    ("data", "limits", "result"),
    [
        (pack((3, 3, b"abc")), {}, PackSize(1, 3)),
        (pack(), {}, PackSize(0, 0)),
        (pack((3, 3, b"abc"), (3, 0, b"")), {}, PackSize(2, 3)),
        (pack((3, 3, b"abc")), {"inflated": 3}, PackSize(1, 3)),
        (pack((3, 3, b"abc")), {"inflated": 2}, "too_large"),
        (pack((3, 3, b"abc")), {"largest": 2}, "too_large"),
        (pack((3, 2, b"ab"), (3, 2, b"cd")), {"inflated": 3}, "too_large"),
        (pack((3, 1 << 50, b"")), {}, "too_large"),
        (pack((3, 1, b"a"), (3, 1, b"b")), {"objects": 1}, "too_many_objects"),
        (pack((3, 2, b"abc")), {}, "object_corrupt"),
        (pack((3, 4, b"abc")), {}, "object_corrupt"),
        (pack((3, 100, bytes(10_000_000))), {}, "object_corrupt"),
        (pack((0, 3, b"abc")), {}, "archive_invalid"),
        (pack((5, 3, b"abc")), {}, "archive_invalid"),
        (pack((7, 5, b"\x80\x01\x85\x01z")), {}, PackSize(1, 133)),
        (pack((7, 6, b"\1\x80\x80\x80\x80\x40")), {}, "too_large"),
        (pack((7, 2, b"\x80\x80")), {}, "archive_invalid"),
        (pack((3, 3, b"abc"), count=2)[:-20] + bytes(20), {}, "archive_invalid"),
        (pack((3, 3, b"abc"), count=0), {}, "archive_invalid"),
        (pack((3, 3, b"abc")) + b"x", {}, "archive_invalid"),
        (pack((3, 3, b"abc"))[:-1], {}, "pack_truncated"),
        (pack((3, 3, b"abc"))[:15], {}, "pack_truncated"),
        (b"PACK\0\0\0\4\0\0\0\0" + bytes(20), {}, "archive_invalid"),
        (b"", {}, "pack_truncated"),
    ],
)
def test_packs(data: bytes, limits: dict[str, int], result: PackSize | str) -> None:
    assert outcome(data, **limits) == result


def test_a_sha256_pack_ends_with_32_bytes() -> None:
    data = pack()[:-20] + bytes(32)
    assert measure(io.BytesIO(data), "sha256", Limits()) == PackSize(0, 0)


def test_it_looks_up_between_objects() -> None:
    ticks: list[int] = []
    measure(io.BytesIO(pack((3, 1, b"a"), (3, 1, b"b"))), "sha1", Limits(), lambda: ticks.append(1))
    assert len(ticks) >= 2
