"""Files that come with a capture's answer: read strictly, and each only once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.sandboxes.deadline import Deadline
from worker.snapshots.handed import MAX_HANDED, HandedOver, parse_handed
from worker.snapshots.paths import FormatError

NAMES = st.one_of(
    st.sampled_from(["empty.z", "omitted.z"]),
    st.builds("part-{}.{}".format, st.integers(0, 999), st.sampled_from(["bundle", "path"])),
)


def written(files):
    return b"".join(b"file %s %d\n%s" % (name.encode(), len(data), data) for name, data in files.items())


@given(st.dictionaries(NAMES, st.binary(max_size=200), max_size=6))
def test_what_is_written_is_read(files):
    assert parse_handed(written(files)) == files


@given(st.dictionaries(NAMES, st.binary(max_size=50), min_size=1, max_size=3), st.data())
def test_a_cut_is_noticed_unless_it_is_between_files(files, data):
    whole = written(files)
    cut = data.draw(st.integers(1, len(whole) - 1))
    try:
        read = parse_handed(whole[:cut])
    except FormatError:
        return
    assert written(read) == whole[:cut]


REFUSED = [
    b"file part-0.bundle 3\nab",
    b"file part-0.bundle 3\nabcd",
    b"file part-00.bundle 0\n",
    b"file part-0.bundle 00\n",
    b"file part-0.bundle -1\n",
    b"file part-12345.path 0\n",
    b"file capture.txt 0\n",
    b"file ../part-0.path 0\n",
    b"file part-0.path\n0\n",
    b"file part-0.path 0\r\n",
    b"file empty.z 0\nfile empty.z 0\n",
    b"file empty.z 0\n\n",
    b" file empty.z 0\n",
    b"file empty.z 123456789\n",
    b"file \xef\xbc\x90 0\n",
    b"end\n",
]


@pytest.mark.parametrize("data", REFUSED)
def test_anything_else_is_refused_whole(data):
    with pytest.raises(FormatError, match=r"^handed: malformed$"):
        parse_handed(data)


def test_more_than_the_bound():
    assert len(parse_handed(written({"part-0.bundle": bytes(MAX_HANDED)}))["part-0.bundle"]) == MAX_HANDED
    with pytest.raises(FormatError, match=r"^handed: too_large$"):
        parse_handed(written({"part-0.bundle": bytes(MAX_HANDED), "empty.z": b"x"}))


class Disk:
    def __init__(self):
        self.asked = []

    def read(self, path, *, deadline, offset=0):
        self.asked.append((path, offset))
        return iter([b"from disk"[offset:]])


def test_a_second_look_is_at_the_file_itself():
    disk, soon = Disk(), Deadline.after(5)
    files = HandedOver(disk, "/out", {"part-0.bundle": b"handed over"})
    assert list(files.read("/out/part-0.bundle", deadline=soon, offset=7)) == [b"over"]
    assert list(files.read("/out/part-0.bundle", deadline=soon, offset=5)) == [b"disk"]
    assert list(files.read("/out/empty.z", deadline=soon)) == [b"from disk"]
    assert disk.asked == [("/out/part-0.bundle", 5), ("/out/empty.z", 0)]
