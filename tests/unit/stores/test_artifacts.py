import hashlib
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from worker.failures.model import InvalidRequest, OperationFailed
from worker.stores.artifacts import Artifact, ArtifactStore, artifact_store


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    made = {"part-0.bundle": b"# v2 git bundle\n" * 200_000, "diff.patch": b"", "stat.json": b"{}\n"}
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
    return {name: tmp_path / name for name in made}


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactStore:
    url = f"file://{tmp_path}/store" if request.param == "file" else f"memory://{tmp_path}/store"
    return ArtifactStore("main", url)


def paths(store: ArtifactStore) -> list[str]:
    return sorted(path.rpartition("/")[2] for path in store._fs.find(store._root))


def test_an_artifact_is_named_by_what_it_holds(store: ArtifactStore, files: dict[str, Path]) -> None:
    artifact = store.put(files, {"run_id": "r"})
    manifest = store.manifest(artifact.digest)
    assert manifest["run_id"] == "r"
    assert manifest["files"]["part-0.bundle"] == {
        "bytes": 3_200_000,
        "sha256": hashlib.sha256(files["part-0.bundle"].read_bytes()).hexdigest(),
    }
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    assert artifact == Artifact("main", hashlib.sha256(text).hexdigest(), 3_200_003 + len(text))
    assert str(artifact) == f"main/sha256:{artifact.digest}"
    where = f"sha256/{artifact.digest[:2]}/{artifact.digest}/manifest.json"
    assert store._fs.exists(f"{store._root}/{where}")
    assert paths(store) == ["diff.patch", "manifest.json", "part-0.bundle", "stat.json"]


def test_it_comes_back_byte_for_byte(store: ArtifactStore, files: dict[str, Path], tmp_path: Path) -> None:
    artifact = store.put(files, {})
    store.fetch(artifact.digest, tmp_path / "back")
    for name, path in files.items():
        assert (tmp_path / "back" / name).read_bytes() == path.read_bytes()
    assert hashlib.sha256((tmp_path / "back" / "manifest.json").read_bytes()).hexdigest() == artifact.digest


def test_it_is_written_once(store: ArtifactStore, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    first = store.put(files, {"a": 1})
    monkeypatch.setattr(store, "_write", lambda *_: pytest.fail("written twice"))
    assert store.put(files, {"a": 1}) == first


def test_another_manifest_is_another_artifact(store: ArtifactStore, files: dict[str, Path]) -> None:
    assert store.put(files, {"a": 1}).digest != store.put(files, {"a": 2}).digest


@pytest.mark.parametrize("name", ["part-0.bundle", "stat.json", "manifest.json"])
@pytest.mark.parametrize("harm", ["changed", "removed"])
def test_damage_is_seen(store: ArtifactStore, files: dict[str, Path], tmp_path: Path, name: str, harm: str) -> None:
    artifact = store.put(files, {})
    key = store._key(artifact.digest, name)
    if harm == "removed":
        store._fs.rm(key)
    else:
        store._fs.pipe_file(key, b"x")
    gone = harm == "removed" and name == "manifest.json"
    for look in (lambda: store.verify(artifact.digest), lambda: store.fetch(artifact.digest, tmp_path / "back")):
        with pytest.raises((InvalidRequest, OperationFailed, FileNotFoundError)) as caught:
            look()
        if isinstance(caught.value, OperationFailed):
            assert (caught.value.failure.stage, caught.value.failure.reason) == ("store", "digest_mismatch")
        assert isinstance(caught.value, InvalidRequest) is gone


def test_a_store_that_damages_what_it_is_given(
    store: ArtifactStore, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = store._fs.open

    def rotten(path: str, mode: str = "rb", **options: Any) -> Any:
        if mode == "wb" and ".bundle" in path:
            with real(path, "wb") as file:
                file.write(b"rot")
            return real(path.replace(".part", ".elsewhere"), "wb")
        return real(path, mode, **options)

    monkeypatch.setattr(store._fs, "open", rotten)
    with pytest.raises(OperationFailed) as caught:
        store.put(files, {})
    assert caught.value.failure.reason == "digest_mismatch"
    assert "manifest.json" not in paths(store)
    assert not [name for name in paths(store) if name.endswith(".part")]


def test_what_a_dead_worker_left_is_no_artifact(
    store: ArtifactStore, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = store._write

    def dies(digest: str, name: str, *rest: Any) -> None:
        if name == "manifest.json":
            raise KeyboardInterrupt
        real(digest, name, *rest)

    monkeypatch.setattr(store, "_write", dies)
    with pytest.raises(KeyboardInterrupt):
        store.put(files, {})
    monkeypatch.setattr(store, "_write", real)
    artifact = store.put(files, {})
    store.verify(artifact.digest)
    assert paths(store) == ["diff.patch", "manifest.json", "part-0.bundle", "stat.json"]


def test_temporary_files_of_dead_writers_are_removed_after_a_day(tmp_path: Path, files: dict[str, Path]) -> None:
    store = ArtifactStore("main", f"file://{tmp_path}/store")
    store.put(files, {"a": 1})
    incoming = tmp_path / "store" / "incoming"
    assert list(incoming.iterdir()) == []
    for name, age in {"old.part": 25, "young.part": 23, "somebody's": 25}.items():
        (incoming / name).write_bytes(b"x")
        when = time.time() - age * 3600
        os.utime(incoming / name, (when, when))
    store.put(files, {"a": 1})
    store.put(files, {"a": 2})
    assert sorted(path.name for path in incoming.iterdir()) == ["somebody's", "young.part"]


@pytest.mark.parametrize("fault", [PermissionError, NotImplementedError])
def test_a_store_that_cannot_tell_what_is_old_keeps_artifacts_all_the_same(
    store: ArtifactStore, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch, fault: type[Exception]
) -> None:
    def refuses(*_: Any, **__: Any) -> Any:
        raise fault

    monkeypatch.setattr(store._fs, "ls", refuses)
    monkeypatch.setattr(store._fs, "modified", refuses)
    store.verify(store.put(files, {}).digest)


def test_many_writers_of_the_same_artifact(tmp_path: Path, files: dict[str, Path]) -> None:
    made: list[Artifact] = []
    work = lambda: made.append(ArtifactStore("main", f"file://{tmp_path}/s").put(files, {}))  # noqa: E731
    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(made) == 6
    assert len(set(made)) == 1


@pytest.mark.parametrize("name", ["../x", "a/b", "manifest.json", "", ".hidden"])
def test_names_that_are_no_files(store: ArtifactStore, files: dict[str, Path], name: str) -> None:
    with pytest.raises(ValueError, match="files"):
        store.put({name: files["stat.json"]}, {})


@pytest.mark.parametrize("digest", ["0" * 64, "../../etc", "", "A" * 64])
def test_artifacts_that_are_not_there(store: ArtifactStore, digest: str) -> None:
    with pytest.raises(InvalidRequest, match="artifact: not_found"):
        store.manifest(digest)


def test_stores_are_names(tmp_path: Path) -> None:
    places = {"main": f"file://{tmp_path}"}
    assert artifact_store(places, "main").name == "main"
    for name in (f"file://{tmp_path}", "other", ""):
        with pytest.raises(InvalidRequest, match="artifact_store: not_configured"):
            artifact_store(places, name)
