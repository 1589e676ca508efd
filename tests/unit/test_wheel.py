"""An installed package has every file of the packages, whatever is kept out of git."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[2]


def test_a_wheel_holds_every_file_of_the_packages(tmp_path: Path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")

    files = {path for name in ("worker", "tasks") for path in (ROOT / name).rglob("*") if path.is_file()}
    wanted = {str(path.relative_to(ROOT)) for path in files if path.suffix != ".pyc"}
    assert "worker/secrets/keyring.py" in wanted
    assert wanted - set(ZipFile(wheel).namelist()) == set()
