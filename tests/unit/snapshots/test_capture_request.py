"""Requests of a capture: refused by field, never by value."""

import pytest

from worker.failures.model import InvalidRequest
from worker.snapshots.capture import CaptureRequest
from worker.snapshots.globs import MAX_GLOB, MAX_GLOBS, pathspecs


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*.log", ("**/*.log", "**/*.log/**")),
        ("build/", ("**/build", "**/build/**")),
        ("/build", ("build", "build/**")),
        ("/build/", ("build", "build/**")),
        ("a/b", ("a/b", "a/b/**")),
        ("a/**/b", ("a/**/b", "a/**/b/**")),
        ("**/x", ("**/x", "**/x/**")),
        (":(top)x", ("**/:(top)x", "**/:(top)x/**")),
        ("-rf", ("**/-rf", "**/-rf/**")),
    ],
)
def test_globs_are_read_as_in_a_gitignore(glob, expected):
    assert pathspecs(glob, "include") == expected


@pytest.mark.parametrize(
    "glob", ["", "/", "//", "a//b", "..", "../a", "a/../b", "./a", "a\0", "a\nb", "x" * (MAX_GLOB + 1)]
)
def test_bad_globs_are_refused(glob):
    with pytest.raises(InvalidRequest) as caught:
        pathspecs(glob, "include")
    assert caught.value.field_name == "include"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("key", ""),
        ("key", "a/b"),
        ("key", "a.b"),
        ("key", "k" * 129),
        ("path", "relative"),
        ("path", "/a\nb"),
        ("path", "/a\0b"),
        ("base", "HEAD"),
        ("base", "a" * 41),
        ("base", "A" * 40),
        ("baseline", "--all"),
        ("max_file", 0),
        ("include", ("..",)),
        ("exclude", ("",)),
        ("exclude", ("x",) * (MAX_GLOBS + 1)),
    ],
)
def test_a_bad_field_is_named(field, value):
    good = {"path": "/workspace/r", "key": "op-1_a", "base": "a" * 40, "baseline": "b" * 64}
    assert CaptureRequest(**good).path == "/workspace/r"
    with pytest.raises(InvalidRequest) as caught:
        CaptureRequest(**good | {field: value})
    assert caught.value.field_name == field
