"""Doctor names the settings whose directory cannot be written."""

from pathlib import Path

from worker.commands.places import places
from worker.settings import Settings


def config(place: Path, *, allow_local: bool = True) -> Settings:
    return Settings(
        allow_local=allow_local, local_root=place / "local", diagnostics_dir=place / "diagnostics",
        artifact_stores={"default": f"file://{place}/artifacts", "far": "s3://bucket"},
        tool_stores={"default": f"{place}/tools"},
    )  # fmt: skip


def test_directories_that_can_be_made_are_no_finding(tmp_path: Path):
    assert places(config(tmp_path / "not" / "yet")) == []


def test_directories_that_cannot_be_made_are_named(tmp_path: Path):
    (tmp_path / "file").write_text("")
    names = ["DIAGNOSTICS_DIR", "LOCAL_ROOT", "ARTIFACT_STORES", "TOOL_STORES"]

    found = places(config(tmp_path / "file"))
    without_local = places(config(tmp_path / "file", allow_local=False))

    assert [(each.check, each.level) for each in found] == [(f"SANDFERRY_{name}", "warning") for name in names]
    assert [each.check for each in without_local] == [f"SANDFERRY_{name}" for name in names if name != "LOCAL_ROOT"]
