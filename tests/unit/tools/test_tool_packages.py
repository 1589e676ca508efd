"""Packages: one digest, one archive, and a reason for every refusal."""

import hashlib
import io
import json
import os
import signal
import subprocess
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.rig.waiting import promptly
from worker.commands import tools as commands
from worker.failures.model import InvalidRequest
from worker.failures.reasons import REASONS
from worker.failures.vocabulary import FIELDS
from worker.tools import manifest as manifests
from worker.tools.directory import build
from worker.tools.manifest import Effect, check_arguments, parse_manifest, valid_path
from worker.tools.package import File, Reference, pack, read_descriptor, unpack
from worker.tools.store import PackageStore, package_store

LIMIT = 1_000_000
MANIFEST = {
    "schema": 1, "name": "note", "version": "1.0", "entrypoint": ["./run.sh", "x"],
    "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False},
    "timeout": 30, "effect": "write",
}  # fmt: skip
FILES = {"run.sh": File(b"#!/bin/sh\n", executable=True), "lib/a.txt": File(b"a")}


def made(manifest=None, files=None):
    return pack({**MANIFEST, **(manifest or {})}, FILES if files is None else files, limit=LIMIT)


def refused(call) -> tuple[str, str]:
    with pytest.raises(InvalidRequest) as caught:
        call()
    field, reason = caught.value.field_name, caught.value.reason
    assert field in FIELDS
    assert reason in REASONS
    return field, reason


def test_the_digest_is_over_the_canonical_form():
    package = made()
    text = json.loads(package.descriptor.text)
    assert text["schema"] == "sandferry.tool/1"
    assert text["manifest"] == MANIFEST
    assert [entry["path"] for entry in text["files"]] == ["lib/a.txt", "run.sh"]
    canonical = json.dumps(text, sort_keys=True, separators=(",", ":")).encode()  # RFC 8785 of plain ASCII and integers
    assert package.descriptor.digest == hashlib.sha256(canonical).hexdigest()
    assert str(package.descriptor.reference) == f"note@sha256:{package.descriptor.digest}"


def test_the_same_files_make_the_same_bytes():
    shuffled = {"lib/a.txt": FILES["lib/a.txt"], "run.sh": FILES["run.sh"]}
    turned = dict(reversed(MANIFEST.items()))
    assert pack(turned, shuffled, limit=LIMIT).archive == made().archive


@pytest.mark.parametrize(
    "other",
    [
        made({"effect": "read"}),
        made({"effect": "mixed"}),
        pack({key: value for key, value in MANIFEST.items() if key != "effect"}, FILES, limit=LIMIT),
        made({"version": "1.1"}),
        made({"timeout": 31}),
        made(files={**FILES, "lib/a.txt": File(b"b")}),
        made(files={**FILES, "lib/a.txt": File(b"a", executable=True)}),
        made(files={**FILES, "lib/b.txt": File(b"a")}),
    ],
)
def test_whatever_changes_changes_the_digest(other):
    assert other.descriptor.digest != made().descriptor.digest


def test_an_absent_effect_is_undeclared():
    assert (
        parse_manifest({key: value for key, value in MANIFEST.items() if key != "effect"}).declared is Effect.UNDECLARED
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"effect": "undeclared"}, ("manifest_effect", "bad_value")),
        ({"effect": "Read"}, ("manifest_effect", "bad_value")),
        ({"effects": "read"}, ("manifest", "unknown_field")),
        ({"name": "Note"}, ("manifest_name", "bad_value")),
        ({"name": "../note"}, ("manifest_name", "bad_value")),
        ({"schema": 2}, ("manifest_schema", "bad_value")),
        ({"entrypoint": []}, ("manifest_entrypoint", "bad_value")),
        ({"entrypoint": "run"}, ("manifest_entrypoint", "wrong_type")),
        ({"entrypoint": ["./../run"]}, ("manifest", "unsafe_path")),
        ({"entrypoint": ["./none"]}, ("manifest_entrypoint", "missing")),
        ({"entrypoint": ["a\0b"]}, ("manifest_entrypoint", "bad_value")),
        ({"timeout": 0}, ("manifest_timeout", "out_of_range")),
        ({"timeout": 86_401}, ("manifest_timeout", "out_of_range")),
        ({"timeout": 1.5}, ("manifest_timeout", "wrong_type")),
        ({"timeout": True}, ("manifest_timeout", "wrong_type")),
        ({"output_limit": 0}, ("manifest_output_limit", "out_of_range")),
        ({"output": "xml"}, ("manifest_output", "bad_value")),
        ({"env": ["A B"]}, ("manifest_env", "bad_value")),
        ({"env": ["SANDFERRY_INPUT"]}, ("manifest_env", "bad_value")),
        ({"input_schema": {"type": "objekt"}}, ("manifest_input_schema", "schema")),
        ({"input_schema": {"$ref": "http://127.0.0.1:1/x"}}, ("manifest_input_schema", "outside_reference")),
        ({"input_schema": {"not": {"$ref": "file:///etc/passwd"}}}, ("manifest_input_schema", "outside_reference")),
        ({"input_schema": {"const": 2**60}}, ("manifest", "bad_value")),
    ],
)
def test_a_manifest_is_refused_with_the_reason(change, expected):
    assert refused(lambda: made(change)) == expected


def test_a_missing_field_is_named():
    without = {key: value for key, value in MANIFEST.items() if key != "timeout"}
    assert refused(lambda: pack(without, FILES, limit=LIMIT)) == ("manifest_timeout", "missing")


@pytest.mark.parametrize("path", ["../a", "/a", "a/../b", "a//b", "", ".", "a/", "a\nb", "a b", "é", "x" * 101, "a\\b"])
def test_a_path_that_escapes_is_refused(path):
    assert not valid_path(path)
    assert refused(lambda: made(files={**FILES, path: File(b"")})) == ("package", "unsafe_path")


def test_an_oversized_package_is_refused():
    assert refused(lambda: made(files={**FILES, "big": File(b"x" * LIMIT)})) == ("package", "too_large")
    assert refused(lambda: unpack(made().archive, limit=100)) == ("package", "too_large")


def test_an_archive_reads_back():
    package = made()
    again = unpack(package.archive, limit=LIMIT)
    assert again.archive == package.archive
    assert read_descriptor(package.archive[: len(package.descriptor.text) + 512]).digest == package.descriptor.digest
    with tarfile.open(fileobj=io.BytesIO(package.archive)) as tar:
        assert [(m.name, m.mode, m.mtime, m.uid) for m in tar] == [
            ("package.json", 0o644, 0, 0), ("files/lib/a.txt", 0o644, 0, 0), ("files/run.sh", 0o755, 0, 0),
        ]  # fmt: skip


def rewrapped(change) -> bytes:
    """The archive of :func:`made`, member by member, each as ``change`` gives it back."""
    out = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(made().archive)) as source,
        tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for member in source:
            data = source.extractfile(member).read()
            for info, content in change(member, data):
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def renamed(member, name, **fields):
    info = tarfile.TarInfo(name)
    info.mode = member.mode
    for key, value in fields.items():
        setattr(info, key, value)
    return info


def only(name, replace):
    return lambda member, data: replace(member, data) if member.name == name else [(member, data)]


LINK = {"type": tarfile.SYMTYPE, "linkname": "../../../etc/passwd"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (only("files/lib/a.txt", lambda m, _: [(m, b"b")]), "digest_mismatch"),
        (only("files/lib/a.txt", lambda m, _: [(m, b"aa")]), "digest_mismatch"),
        (only("files/lib/a.txt", lambda m, d: [(renamed(m, "files/../../a"), d)]), "unsafe_path"),
        (only("files/lib/a.txt", lambda m, d: [(renamed(m, "/etc/a"), d)]), "unsafe_path"),
        (only("files/lib/a.txt", lambda m, d: [(m, d), (m, d)]), "duplicate_path"),
        (only("files/lib/a.txt", lambda m, _: [(renamed(m, m.name, **LINK), b"")]), "symlink"),
        (only("files/lib/a.txt", lambda m, _: [(renamed(m, m.name, type=tarfile.FIFOTYPE), b"")]), "archive_invalid"),
        (only("files/lib/a.txt", lambda *_: []), "archive_invalid"),
        (only("files/lib/a.txt", lambda m, d: [(m, d), (renamed(m, "files/more"), b"x")]), "archive_invalid"),
        (only("files/run.sh", lambda m, d: [(renamed(m, m.name, mode=0o644), d)]), "archive_invalid"),
        (only("files/run.sh", lambda m, d: [(renamed(m, m.name, mtime=7), d)]), "archive_invalid"),
        (only("package.json", lambda m, d: [(m, d.replace(b'"write"', b'"read"'))]), None),
        (only("package.json", lambda m, d: [(m, d + b" ")]), "archive_invalid"),
        (only("package.json", lambda m, d: [(m, d.replace(b"lib/a.txt", b"../../aaa"))]), "archive_invalid"),
    ],
)
def test_a_changed_archive_is_refused_and_a_whole_one_has_another_name(change, reason):
    archive = rewrapped(change)
    if reason is None:
        assert unpack(archive, limit=LIMIT).descriptor.digest != made().descriptor.digest
    else:
        assert refused(lambda: unpack(archive, limit=LIMIT)) == ("package", reason)


def test_what_follows_the_archive_is_refused():
    assert refused(lambda: unpack(made().archive + b"x" * 512, limit=LIMIT)) == ("package", "archive_invalid")


@given(st.binary(max_size=2000))
def test_no_bytes_are_taken_for_an_archive(data):
    with pytest.raises(InvalidRequest):
        unpack(data, limit=LIMIT)


@given(st.integers(0, 4000), st.integers(0, 255))
def test_one_changed_byte_is_never_the_same_package(place, value):
    archive = bytearray(made().archive)
    if archive[place] == value:
        return
    archive[place] = value
    try:
        package = unpack(bytes(archive), limit=LIMIT)
    except InvalidRequest:
        return
    assert package.descriptor.digest != made().descriptor.digest


class TestDirectory:
    def write(self, root: Path) -> Path:
        root.mkdir(parents=True)
        (root / "manifest.json").write_text(json.dumps(MANIFEST, indent=3))
        (root / "run.sh").write_bytes(b"#!/bin/sh\n")
        (root / "run.sh").chmod(0o755)
        (root / "lib").mkdir()
        (root / "lib/a.txt").write_bytes(b"a")
        return root

    def test_two_folders_one_digest(self, tmp_path):
        one, two = self.write(tmp_path / "one"), self.write(tmp_path / "deep/er/two")
        os.utime(two / "run.sh", (1, 1))
        (two / "lib/a.txt").chmod(0o600)
        assert build(one, limit=LIMIT).archive == build(two, limit=LIMIT).archive == made().archive

    def test_a_link_that_stays_is_its_file(self, tmp_path):
        root = self.write(tmp_path / "one")
        (root / "b.txt").symlink_to("lib/a.txt")
        assert build(root, limit=LIMIT).descriptor.listed[0]["path"] == "b.txt"

    @pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "lib"])
    def test_a_link_that_leads_out_is_refused(self, tmp_path, target):
        root = self.write(tmp_path / "one")
        (tmp_path / "outside").write_text("secret")
        (root / "b.txt").symlink_to(target)
        assert refused(lambda: build(root, limit=LIMIT)) == ("package", "symlink")

    def test_a_manifest_that_is_a_link_or_absent_is_refused(self, tmp_path):
        root = self.write(tmp_path / "one")
        (root / "manifest.json").rename(tmp_path / "m.json")
        assert refused(lambda: build(root, limit=LIMIT)) == ("manifest", "missing")
        (root / "manifest.json").symlink_to(tmp_path / "m.json")
        assert refused(lambda: build(root, limit=LIMIT)) == ("manifest", "missing")

    @pytest.mark.parametrize("text", ['{"a":1,"a":1}', '{"a":NaN}', "{", "\ufeff{}", "[" * 100_000])
    def test_json_that_is_none_is_refused(self, tmp_path, text):
        root = self.write(tmp_path / "one")
        (root / "manifest.json").write_text(text)
        assert refused(lambda: build(root, limit=LIMIT)) == ("manifest", "malformed")

    def test_a_link_to_itself_is_refused(self, tmp_path):
        root = self.write(tmp_path / "one")
        (root / "loop").symlink_to("loop")
        assert refused(lambda: build(root, limit=LIMIT)) == ("package", "archive_unsafe")

    @pytest.mark.parametrize("output", [None, ".", "out"])
    def test_an_archive_inside_its_tool_is_refused(self, tmp_path, monkeypatch, output):
        root = self.write(tmp_path / "one")
        before = sorted(root.rglob("*"))
        monkeypatch.chdir(root)
        told = CliRunner().invoke(commands.app, ["build", ".", *(["-o", output] if output else [])])
        assert told.exit_code == 2
        assert "--output" in told.output
        assert sorted(root.rglob("*")) == before

    def test_what_is_no_file_is_refused(self, tmp_path):
        root = self.write(tmp_path / "one")
        os.mkfifo(root / "pipe")
        assert refused(lambda: build(root, limit=LIMIT)) == ("package", "archive_unsafe")

    def test_a_large_directory_is_refused_before_it_is_read(self, tmp_path):
        root = self.write(tmp_path / "one")
        with (root / "huge").open("wb") as file:
            file.truncate(1 << 40)
        assert refused(lambda: build(root, limit=LIMIT)) == ("package", "too_large")


class TestStore:
    def test_a_package_is_kept_once_and_found_by_its_digest(self, tmp_path):
        store = PackageStore(str(tmp_path / "store"))
        package = made()
        reference = package.descriptor.reference
        assert (store.put(package), store.put(package)) == (True, False)
        assert store.describe(reference).manifest == package.descriptor.manifest
        assert PackageStore(f"file://{tmp_path}/store").fetch(reference, limit=LIMIT) == package
        assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".tar"]

    def test_a_damaged_one_is_replaced(self, tmp_path):
        store, package = PackageStore(str(tmp_path)), pack(MANIFEST, FILES, limit=LIMIT)
        store.put(package)
        (kept,) = tmp_path.rglob("*.tar")
        kept.write_bytes(package.archive[:-1024])
        assert store.put(package)
        assert kept.read_bytes() == package.archive
        assert not store.put(package)

    def test_what_is_not_there_or_not_itself_is_refused(self, tmp_path):
        store = PackageStore(str(tmp_path))
        reference = made().descriptor.reference
        assert refused(lambda: store.describe(reference)) == ("tool", "not_found")
        assert refused(lambda: store.fetch(reference, limit=LIMIT)) == ("tool", "not_found")
        path = tmp_path / "sha256" / reference.digest[:2] / f"{reference.digest}.tar"
        path.parent.mkdir(parents=True)
        path.write_bytes(made({"effect": "read"}).archive)
        assert refused(lambda: store.describe(reference)) == ("tool", "digest_mismatch")
        assert refused(lambda: store.fetch(reference, limit=LIMIT)) == ("tool", "digest_mismatch")

    def test_a_digest_under_another_name_is_refused(self, tmp_path):
        store = PackageStore(str(tmp_path))
        store.put(made())
        other = Reference("other", made().descriptor.digest)
        for _ in range(2):
            assert refused(lambda: store.describe(other)) == ("tool", "name_mismatch")

    def test_a_store_has_the_name_that_settings_give(self):
        assert refused(lambda: package_store({}, "default")) == ("tool_store", "not_configured")


@pytest.mark.parametrize(
    ("arguments", "fits"),
    [({}, True), ({"n": 1}, True), ({"n": "1"}, False), ({"m": 1}, False), ([], False), (None, False)],
)
def test_arguments_are_checked(arguments, fits):
    if fits:
        check_arguments(MANIFEST["input_schema"], arguments)
    else:
        assert refused(lambda: check_arguments(MANIFEST["input_schema"], arguments)) == ("arguments", "schema")


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"type": "string", "pattern": "^(a+)+$"}, "a" * 60 + "!"),
        ({"type": "array", "uniqueItems": True}, [{"n": number} for number in range(40_000)]),
    ],
)
def test_arguments_that_take_for_ever_to_check_are_refused(monkeypatch, schema, arguments):
    monkeypatch.setattr(manifests, "CHECK_TIME", 0.2)
    before = signal.getsignal(signal.SIGALRM)
    began = time.monotonic()
    assert refused(lambda: check_arguments(schema, arguments)) == ("arguments", "too_large")
    assert time.monotonic() - began < promptly(5)
    assert (signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)) == (before, (0.0, 0.0))


def test_arguments_are_checked_in_a_thread_too():
    with ThreadPoolExecutor() as pool:
        assert refused(lambda: pool.submit(check_arguments, {"type": "string"}, 1).result()) == ("arguments", "schema")


def test_a_reference_that_leads_nowhere_is_refused():
    assert refused(lambda: check_arguments({"$ref": "#/$defs/none"}, {})) == ("arguments", "schema")
    assert refused(lambda: check_arguments({"$ref": "#"}, {})) == ("arguments", "schema")


@pytest.mark.parametrize("text", ["note", "note@sha256:00", f"Note@sha256:{'0' * 64}", f"note@sha256:{'0' * 64}\n"])
def test_a_reference_has_one_form(text):
    assert refused(lambda: Reference.parse(text)) == ("tool", "malformed")


@pytest.mark.parametrize("example", ["word-count", "note"])
def test_the_examples_build_and_run(example, tmp_path):
    root = Path(__file__).resolve().parents[3] / "docs/examples/tools" / example
    package = build(root, limit=LIMIT)
    assert package.descriptor.manifest.declared.value == {"word-count": "read", "note": "write"}[example]
    (tmp_path / "file").write_text("two words\n")
    text = {"word-count": '{"path": "file"}', "note": '{"text": "hello"}'}[example]
    done = subprocess.run(
        [str(root / "run.sh")], input=text.encode(), capture_output=True, cwd=tmp_path, check=True,
        env={"PATH": os.environ["PATH"], "SANDFERRY_DISPATCH_ID": "call-1"},
    )  # fmt: skip
    expected = {"word-count": {"lines": 1, "words": 2, "bytes": 10}, "note": {"notes": 1}}[example]
    assert json.loads(done.stdout) == expected
