from collections.abc import Iterator
from pathlib import Path

import pytest
from billiard.exceptions import SoftTimeLimitExceeded

from worker.failures.model import Cancelled, OperationFailed
from worker.imports import transport
from worker.imports.transport import fetch_file, fetch_text
from worker.sandboxes.deadline import Deadline
from worker.snapshots.digest import bundle_digest

DATA = bytes(range(256)) * 40
MIB = 1024 * 1024


class Reads:
    """A sandbox of one file; each read follows the next of ``scripts``: bytes, or an exception to raise."""

    def __init__(self, *scripts: list[bytes | BaseException]) -> None:
        self.scripts = list(scripts)
        self.offsets: list[int] = []

    def read(self, path: str, *, deadline: Deadline, offset: int = 0) -> Iterator[bytes]:
        self.offsets.append(offset)
        skip = offset
        for step in self.scripts.pop(0):
            if isinstance(step, BaseException):
                raise step
            yield step[skip:]
            skip = max(0, skip - len(step))


def fetch(sandbox: Reads, path: Path, data: bytes = DATA) -> None:
    digest = bundle_digest(len(data), [data])
    fetch_file(sandbox, "/x", size=len(data), digest=digest, destination=path, deadline=Deadline.after(30))


def test_a_file_arrives(tmp_path: Path) -> None:
    sandbox = Reads([DATA[:1000], DATA[1000:]])
    fetch(sandbox, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == DATA
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o600
    assert sandbox.offsets == [0]


@pytest.mark.parametrize(
    "first",
    [
        [DATA[:-1]],
        [b"\1" + DATA[1:]],
        [DATA, b"more"],
        [DATA[:500], ConnectionResetError()],
        [DATA[:500], TimeoutError()],
        [],
    ],
    ids=["short", "damaged", "long", "reset", "timeout", "nothing"],
)
def test_a_bad_read_is_repeated_once(tmp_path: Path, first: list[bytes | BaseException]) -> None:
    sandbox = Reads(first, [DATA])
    fetch(sandbox, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == DATA
    assert sandbox.offsets == [0, 0]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [([DATA[:-1]], "size_mismatch"), ([DATA, b"x"], "size_mismatch"), ([DATA[::-1]], "digest_mismatch")],
)
def test_a_second_bad_read_is_the_last(tmp_path: Path, bad: list[bytes | BaseException], reason: str) -> None:
    sandbox = Reads(bad, bad)
    with pytest.raises(OperationFailed) as caught:
        fetch(sandbox, tmp_path / "f")
    failure = caught.value.failure
    assert (failure.operation, failure.stage, failure.reason) == ("copy_back", "transport", reason)


def test_a_second_broken_connection_is_raised_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(ConnectionResetError):
        fetch(Reads([ConnectionResetError()], [ConnectionResetError()]), tmp_path / "f")


@pytest.mark.parametrize("fault", [Cancelled(), RuntimeError(), KeyboardInterrupt(), SoftTimeLimitExceeded()])
def test_what_is_no_transfer_fault_is_not_repeated(tmp_path: Path, fault: BaseException) -> None:
    sandbox = Reads([DATA[:10], fault])
    with pytest.raises(type(fault)):
        fetch(sandbox, tmp_path / "f")
    assert sandbox.offsets == [0]


def test_a_large_file_goes_on_where_it_was_cut(tmp_path: Path) -> None:
    data = DATA * (70 * MIB // len(DATA))
    sandbox = Reads([data[: 65 * MIB], ConnectionResetError()], [data])
    fetch(sandbox, tmp_path / "f", data)
    assert sandbox.offsets == [0, 65 * MIB]
    assert (tmp_path / "f").read_bytes() == data


def test_a_stream_without_end_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pulled = []

    class Endless(Reads):
        def read(self, path: str, *, deadline: Deadline, offset: int = 0) -> Iterator[bytes]:
            while True:
                pulled.append(1)
                yield DATA

    with pytest.raises(OperationFailed) as caught:
        fetch(Endless(), tmp_path / "f")
    assert caught.value.failure.reason == "size_mismatch"
    assert len(pulled) == 4
    assert (tmp_path / "f").stat().st_size == len(DATA) + 1


def test_a_deadline_ends_it(tmp_path: Path) -> None:
    with pytest.raises(OperationFailed) as caught:
        fetch_file(Reads([DATA]), "/x", size=9, digest="0" * 64, destination=tmp_path / "f", deadline=Deadline.after(0))
    assert caught.value.failure.reason == "deadline"


def test_small_files_are_bounded() -> None:
    assert fetch_text(Reads([b"ab", b"cd"]), "/x", 4, Deadline.after(9)) == b"abcd"
    with pytest.raises(OperationFailed) as caught:
        fetch_text(Reads([b"ab", b"cde"]), "/x", 4, Deadline.after(9))
    assert (caught.value.failure.stage, caught.value.failure.reason) == (transport.STAGE, "too_large")
