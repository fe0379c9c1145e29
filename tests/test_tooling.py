"""The linter, the formatter and the type checker have nothing to say."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("command", ["ruff check --no-cache .", "ruff format --no-cache --check .", "mypy"])
def test_tool_is_content(command):
    tool, *options = command.split()
    if find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed")
    result = subprocess.run([sys.executable, "-m", tool, *options], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_version_is_stated_once_more_correctly():
    import tomllib

    import calibrant

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == calibrant.__version__
