"""The command line itself, without a service."""

import tomllib
from pathlib import Path

from typer.testing import CliRunner

from worker.cli import app


def test_it_says_which_version_it_is():
    done = CliRunner().invoke(app, ["--version"])
    declared = tomllib.loads(Path("pyproject.toml").read_text())["project"]["version"]
    assert (done.exit_code, done.stdout) == (0, f"sandferry {declared}\n")


def test_without_a_command_it_shows_its_help():
    done = CliRunner().invoke(app, [])
    assert done.exit_code == 2
    assert "copy-backs" in done.output.lower()
