"""A tool's directory on this machine, read into a package."""

import os
from pathlib import Path

from worker.failures.model import InvalidRequest
from worker.tools.manifest import MANIFEST, MANIFEST_MAX, read_json
from worker.tools.package import File, Package, pack


def build(directory: Path, *, limit: int) -> Package:
    """The package of a directory: ``manifest.json`` and every other file beneath it.

    A link that stays inside is taken as the file it leads to. Empty directories are not part of a package.

    :raises InvalidRequest: names the part and why; a link that leads out is ``symlink``.
    :raises OSError: it cannot be read.
    """
    root = directory.resolve(strict=True)
    manifest = root / MANIFEST
    if not manifest.is_file() or manifest.is_symlink():
        raise InvalidRequest("manifest", "missing")
    if manifest.stat().st_size > MANIFEST_MAX:
        raise InvalidRequest("manifest", "too_large")
    files: dict[str, File] = {}
    total = 0
    for path in _files(root):
        total += path.stat().st_size
        if total > limit:
            raise InvalidRequest("package", "too_large")
        files[path.relative_to(root).as_posix()] = File(path.read_bytes(), bool(path.stat().st_mode & 0o100))
    return pack(read_json(manifest.read_bytes(), "manifest"), files, limit=limit)


def _files(root: Path) -> list[Path]:
    found = []
    for folder, names, files in os.walk(root, followlinks=False):
        for name in names:
            _stays_inside(root, Path(folder, name))
            if Path(folder, name).is_symlink():
                raise InvalidRequest("package", "symlink")  # a directory twice, or without end
        for name in files:
            path = Path(folder, name)
            _stays_inside(root, path)
            if not path.is_file():
                raise InvalidRequest("package", "archive_unsafe")  # a socket, a pipe, a device
            found.append(path)
    return sorted(path for path in found if path != root / MANIFEST)


def _stays_inside(root: Path, path: Path) -> None:
    # Not Path.resolve, which raises for a link to itself; that one leads to no file, as any that dangles.
    if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
        raise InvalidRequest("package", "symlink")
