"""What a sandbox wrote is read whole or not at all."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.snapshots.digest import bundle_digest
from worker.snapshots.format import (
    MAX_EMPTY,
    MAX_OMITTED,
    MAX_TEXT,
    OMITTED,
    STATES,
    CaptureText,
    Part,
    parse_capture,
    parse_empty,
    parse_omitted,
    parse_path,
)
from worker.snapshots.paths import FormatError, checked_path

A40, B40, D64 = "a" * 40, "b" * 40, "d" * 64
PART = (
    f"part 0 kind=repository format=sha1 snapshot={A40} tree={B40} baseline=none base=absent head=none "
    f"branch=0 state=none bundle=7 digest={D64}"
)
TEXT = f"sandferry-capture 1\nquiesce none\n{PART}\nignored 0\nempty 0\nend\n"


def written(capture):
    """The text of a capture, as the helper writes it."""
    parts = [
        f"part {p.number} kind={p.kind} format={p.format} snapshot={p.snapshot} tree={p.tree}"
        f" baseline={p.baseline or 'none'} base={p.base or ('absent' if p.base_absent else 'none')}"
        f" head={p.head or 'none'} branch={int(p.branch)} state={p.state} bundle={p.size} digest={p.digest}\n"
        for p in capture.parts
    ]
    omitted = [f"omitted {kind} {count}\n" for kind, count in capture.omitted.items()]
    head, tail = f"sandferry-capture 1\nquiesce {capture.quiesce}\n", f"ignored {capture.ignored}\n"
    return "".join([head, *parts, *omitted, tail, f"empty {capture.empty}\nend\n"]).encode()


def ids(length):
    return st.text("0123456789abcdef", min_size=length, max_size=length)


@st.composite
def parts(draw, number):
    kind = draw(st.sampled_from(["nested", "submodule"] if number else ["repository", "directory"]))
    form, length = draw(st.sampled_from([("sha1", 40), ("sha256", 64)]))
    base = draw(st.none() | ids(length))
    plain = kind == "directory"
    return Part(
        number=number,
        kind=kind,
        format=form,
        snapshot=draw(ids(length)),
        tree=draw(ids(length)),
        baseline=draw(st.none() | ids(length)),
        base=base,
        base_absent=base is None and draw(st.booleans()),
        head=None if plain else draw(st.none() | ids(length)),
        branch=False if plain else draw(st.booleans()),
        state="none" if plain else draw(st.sampled_from(STATES)),
        size=draw(st.integers(1, 10**15 - 1)),
        digest=draw(ids(64)),
    )


@st.composite
def captures(draw):
    chosen = draw(st.sets(st.sampled_from(OMITTED)))
    return CaptureText(
        quiesce=draw(st.sampled_from(["none", "pause"])),
        parts=tuple(draw(parts(number)) for number in range(draw(st.integers(1, 4)))),
        omitted={kind: draw(st.integers(1, 10**15 - 1)) for kind in OMITTED if kind in chosen},
        ignored=draw(st.integers(0, 10**15 - 1)),
        empty=draw(st.integers(0, MAX_EMPTY)),
    )


@given(captures())
def test_what_is_written_is_read_back(capture):
    assert parse_capture(written(capture)) == capture


@given(captures(), st.data())
def test_a_changed_byte_is_refused_or_means_what_it_says(capture, data):
    raw = bytearray(written(capture))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        read = parse_capture(bytes(raw))
    except FormatError:
        return
    assert written(read) == bytes(raw)


@given(st.binary(max_size=300))
def test_garbage_is_refused(data):
    with pytest.raises(FormatError):
        parse_capture(data)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sandferry-capture 1", "sandferry-capture 2"),
        ("quiesce none\n", ""),
        ("quiesce none", "quiesce stop"),
        ("quiesce none\n", "quiesce none\nquiesce none\n"),
        (f"{PART}\n", ""),
        (f"{PART}\n", f"{PART}\n{PART}\n"),
        ("part 0", "part 1"),
        ("part 0", "part 00"),
        ("kind=repository", "kind=nested"),
        ("kind=repository", "kind=tarball"),
        ("format=sha1", "format=sha256"),
        ("format=sha1", "format=md5"),
        (A40, "A" * 40),
        (A40, "a" * 39),
        (A40, "a" * 64),
        ("baseline=none", f"baseline={D64}"),
        ("baseline=none", "baseline=absent"),
        ("base=absent ", ""),
        ("base=absent", "base=absent base=absent"),
        ("head=none branch=0", "branch=0 head=none"),
        ("branch=0", "branch=2"),
        ("state=none", "state=panic"),
        ("bundle=7", "bundle=0"),
        ("bundle=7", "bundle=07"),
        ("bundle=7", "bundle=-7"),
        ("bundle=7", "bundle=1000000000000000"),
        (D64, "d" * 40),
        (f"{D64}\n", f"{D64} \n"),
        (f"{D64}\n", f"{D64} path=/etc\n"),
        ("ignored 0\n", ""),
        ("ignored 0", "ignored 1e3"),
        ("ignored 0", "omitted sorcery 1\nignored 0"),
        ("ignored 0", "omitted fifo 0\nignored 0"),
        ("ignored 0", "omitted fifo 1\nomitted fifo 1\nignored 0"),
        ("ignored 0", "omitted socket 1\nomitted fifo 1\nignored 0"),
        ("empty 0", f"empty {MAX_EMPTY + 1}"),
        ("empty 0\n", "empty 0\nempty 0\n"),
        ("end\n", "end"),
        ("end\n", "end\nend\n"),
        ("end\n", "end\n\n"),
        ("\n", "\r\n"),
        ("none", "n\xf6ne"),
        ("ignored 0\n", "ignored 0\n\n"),
    ],
)
def test_every_departure_is_refused(old, new):
    assert parse_capture(TEXT.encode())
    assert TEXT.replace(old, new) != TEXT
    with pytest.raises(FormatError):
        parse_capture(TEXT.replace(old, new).encode("latin-1"))


@pytest.mark.parametrize("change", ["head", "branch", "state"])
def test_a_directory_has_nothing_of_a_repository(change):
    values = {"head": f"head={A40}", "branch": "branch=1", "state": "state=merge"}
    plain = TEXT.replace("kind=repository", "kind=directory")
    assert parse_capture(plain.encode()).parts[0].kind == "directory"
    before = {"head": "head=none", "branch": "branch=0", "state": "state=none"}[change]
    with pytest.raises(FormatError, match="contradiction"):
        parse_capture(plain.replace(before, values[change]).encode())


def test_bounds_hold():
    with pytest.raises(FormatError, match="too_large"):
        parse_capture(b"x" * (MAX_TEXT + 1))
    part = parse_capture(TEXT.encode()).parts[0]
    many = [replace(part, number=n, kind="nested" if n else "repository") for n in range(1001)]
    assert len(parse_capture(written(CaptureText(quiesce="none", parts=tuple(many[:1000])))).parts) == 1000
    with pytest.raises(FormatError, match="too_many"):
        parse_capture(written(CaptureText(quiesce="none", parts=tuple(many))))


def test_errors_name_the_field_and_show_no_value():
    with pytest.raises(FormatError) as caught:
        parse_capture(TEXT.replace("state=none", "state=s3cret").encode())
    assert (caught.value.field_name, caught.value.reason) == ("part", "malformed")
    assert "s3cret" not in str(caught.value)


UNSAFE = [
    *(b"", b"/", b"/a", b"a/", b"a//b", b".", b"..", b"../a", b"a/..", b"a/../b", b"./a"),
    *(b".git", b"a/.git", b".git/a", b".GIT", b"a/.Git/b", b"a\0b", b"x" * 256, b"a/" * 2050 + b"a"),
]
SAFE = [b"a", b"a b/c", b"-rf", b"a\nb", b"q\"'`$", b"\xff\xfe", b".gitignore", b"a.git", b"...", b"x" * 255, b"a\\b"]


@pytest.mark.parametrize("path", UNSAFE)
def test_unsafe_paths_are_refused(path):
    with pytest.raises(FormatError):
        checked_path(path, "path")


@pytest.mark.parametrize("path", SAFE)
def test_odd_names_are_names(path):
    assert checked_path(path, "path") == path
    assert parse_path(path, 1) == path
    assert parse_empty(path + b"\0", 1) == (path,)


@given(st.binary(max_size=60))
def test_a_path_that_passes_stays_inside(path):
    try:
        checked_path(path, "path")
    except FormatError:
        return
    parts = path.split(b"/")
    assert not path.startswith(b"/")
    assert not {b"", b".", b"..", b".git"} & set(parts)
    assert b"\0" not in path


def test_part_0_has_no_path_and_others_have_one():
    assert parse_path(b"", 0) == b""
    with pytest.raises(FormatError):
        parse_path(b"a", 0)
    with pytest.raises(FormatError):
        parse_path(b"", 1)


@given(st.lists(st.sampled_from(SAFE), unique=True))
def test_empty_directories_are_read_back(paths):
    data = b"".join(path + b"\0" for path in paths)
    assert parse_empty(data, len(paths)) == tuple(paths)
    with pytest.raises(FormatError):
        parse_empty(data, len(paths) + 1)


@pytest.mark.parametrize("data", [b"a", b"a\0b", b"a\0a\0", b"\0\0", b"../a\0b\0"])
def test_a_bad_list_of_empty_directories_is_refused(data):
    with pytest.raises(FormatError):
        parse_empty(data, 2)


def test_omitted_pairs_are_read():
    data = b"fifo\0p\nq\0unreadable\0\xff/x\0"
    assert parse_omitted(data, {"fifo": 1, "unreadable": 5}) == (("fifo", b"p\nq"), ("unreadable", b"\xff/x"))


@pytest.mark.parametrize(
    "data",
    [
        b"fifo\0a",
        b"fifo\0",
        b"fifo\0\0",
        b"fifo\0a\0fifo\0b\0fifo\0c\0",
        b"socket\0a\0",
        b"\xff\0a\0",
        b"fifo\0" + b"x" * 4097 + b"\0",
    ],
)
def test_bad_pairs_are_refused(data):
    with pytest.raises(FormatError):
        parse_omitted(data, {"fifo": 2})


def test_too_many_pairs_are_refused():
    pair = b"fifo\0a\0"
    assert len(parse_omitted(pair * MAX_OMITTED, {"fifo": MAX_OMITTED + 1})) == MAX_OMITTED
    with pytest.raises(FormatError):
        parse_omitted(pair * (MAX_OMITTED + 1), {"fifo": MAX_OMITTED + 1})


@given(st.lists(st.binary(max_size=20)))
def test_the_digest_does_not_depend_on_the_chunks(chunks):
    whole = b"".join(chunks)
    assert bundle_digest(len(whole), chunks) == bundle_digest(len(whole), [whole])


def test_the_digest_is_gits():
    # printf hello | git hash-object --no-filters --stdin, in a repository of --object-format=sha256
    assert bundle_digest(5, [b"hello"]) == "8aec4e4876f854f688d0ebfc8f37598f38e5fd6903cccc850ca36591175aeb60"
