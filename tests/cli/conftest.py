import io
import shlex
import sys
from pathlib import Path
from shutil import copytree

import pytest

from calibrant.cli import main


@pytest.fixture
def run(capsys):
    """Run a command; its exit code, output and errors."""

    def call(*arguments):
        with pytest.raises(SystemExit) as left:
            main(list(arguments))
        shown = capsys.readouterr()
        return left.value.code, shown.out, shown.err

    return call


@pytest.fixture
def shell(run, monkeypatch, tmp_path):
    """Run a line as a shell would, as far as examples go: one command, from a pipe, into a file."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/bash")

    def pour(path):
        print(path.read_text("utf-8"))

    def call(line):
        words = shlex.split(line)
        if words[0] == "source":
            words = ["calibrant", "completion", "bash"]
        if words[0] == "cat":
            content = Path(words[1]).read_bytes()
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
            assert words[2] == "|"
            words = words[3:]
        for module in ("recalibrate", "reporting"):  # what is captured has no buffer of bytes
            monkeypatch.setattr(f"calibrant.cli.{module}.pour", pour)
        place = words.index(">") if ">" in words else len(words)
        assert words[0] == "calibrant"
        code, out, err = run(*words[1:place])
        if place < len(words):
            Path(words[place + 1]).write_text(out, "utf-8")
        return code, out, err

    return call


@pytest.fixture(scope="session")
def example_files(tmp_path_factory):
    """A folder with the example files, of fewer rows, and with what some examples leave for others."""
    from calibrant.io import dataset as files
    from calibrant.recalibration import Temperature

    path = tmp_path_factory.mktemp("examples")
    for name in ("digits", "diabetes"):
        lines = files.example(name).read_text().splitlines(keepends=True)
        (path / f"{name}.csv").write_text("".join(lines[:121]))
    (path / "better.csv").write_text((path / "digits.csv").read_text())
    digits = files.read(path / "digits.csv", y_true="digit", y_pred="p_*")
    Temperature().fit(digits.y_true, digits.y_pred).save(path / "map.json")
    return path


@pytest.fixture(scope="session")
def digits(example_files):
    """The shorter file of digits: reports on all rows take several times as long."""
    return str(example_files / "digits.csv")


@pytest.fixture
def few_rows(example_files, tmp_path, monkeypatch):
    """The example files, for one test: whatever it writes there, and whichever ran before, others find what they need.

    They are what the demo takes, too.
    """
    monkeypatch.setattr("calibrant.io.example", lambda name: example_files / f"{name}.csv")
    return copytree(example_files, tmp_path / "examples")
