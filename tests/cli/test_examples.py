"""Every example of every help runs as it is written, in order, on the files that the first ones write."""

import io
import shlex
import sys

import pytest

from calibrant.cli.examples import EXAMPLES
from calibrant.cli.manual import FIRST_STEPS

pytest.importorskip("cyclopts")
pytest.importorskip("polars")
pytest.importorskip("matplotlib")

ROWS = 300
"""Of the example files: enough for every example, and few enough for a test."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from calibrant import io as files

    path = tmp_path_factory.mktemp("examples")
    for name in ("digits", "diabetes"):
        lines = files.example(name).read_text().splitlines(keepends=True)
        (path / f"{name}.csv").write_text("".join(lines[: ROWS + 1]))
    (path / "better.csv").write_text((path / "digits.csv").read_text())
    return path


ALL = [
    *(pytest.param(e.command, id=f"first-{i}") for i, e in enumerate(FIRST_STEPS) if " demo" not in e.command),
    *(pytest.param(e.command, id=f"{name}-{i}") for name, es in EXAMPLES.items() for i, e in enumerate(es)),
]


@pytest.mark.parametrize("command", ALL)
def test_example_runs(command, folder, run, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/bash")
    words = shlex.split(command, posix=True)
    if "demo" in words:  # writes the files that others read: not over our shorter ones
        monkeypatch.chdir(tmp_path)
    if "reproduce" in words:
        _shorten(monkeypatch)
    if words[0] == "source":
        words = ["calibrant", "completion", "bash"]
    if words[0] == "cat":
        content = (folder / words[1]).read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        words = words[3:]
        monkeypatch.setattr("calibrant.cli.recalibrate.pour", lambda path: print(path.read_text()))
    place = words.index(">") if ">" in words else len(words)
    assert words[0] == "calibrant"
    code, out, err = run(*words[1:place])
    assert code == 0, err
    assert out
    if place < len(words):
        (folder / words[place + 1]).write_text(out)
        assert len(out) > 100


def _shorten(monkeypatch):
    from calibrant.lab.papers import estimator_error

    few = estimator_error.study.__kwdefaults__ | {"sizes": (4,)}
    monkeypatch.setattr(estimator_error.study, "__kwdefaults__", few)
