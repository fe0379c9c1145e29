"""Commands end in every environment as they do in any other."""

import os
import stat
import sys

import pytest

from tests.hostile.environments import ENVIRONMENTS, Environment, started

pytest.importorskip("cyclopts")
pytest.importorskip("polars")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")

ROWS = "".join(f"{i % 2},{i % 10 / 10},{'κλ'[i % 2]}\x1b[31m\n" for i in range(40))

COMMANDS = {
    "estimate": (["estimate", "x.csv", "--estimator", "Brier()", "--by", "Größe"], 0),
    "refused": (["estimate", "x.csv", "--y-pred", "Größe\x1b[31m"], 2),
    "monitor": (["monitor", "x.csv", "--window", "20", "--state", "state.json"], 0),
    "test": (["test", "x.csv", "--n-resamples", "19"], 0),
    "recalibrate": (
        ["recalibrate", "x.csv", "--method", "Intercept()", "--folds", "2", "--save", "map.json", "--force"],
        0,
    ),
    "report": (["report", "x.csv", "--n-resamples", "99", "--by", "Größe", "--out", "page.html"], 0),
    "plan": (["plan", "--n", "1000"], 0),
    "help": (["monitor", "--help"], 0),
}

SAMPLE = ["0 columns", "utf-16", "no home", "warnings are errors", "all closed"]
"""Environments of the ordinary suite; ``tests/cli`` has others."""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "x.csv").write_text(f"y,p,Größe\n{ROWS}", "utf-8")
    return tmp_path


def check(environment, name, folder):
    arguments, code = COMMANDS[name]
    found = started(environment, arguments, folder)
    err = found.stderr.decode(environment.encoding, "replace")
    out = found.stdout.decode(environment.encoding)
    assert found.returncode == code, err
    assert "Traceback" not in err
    assert "Warning" not in err
    assert "\x1b[31m\n" not in out.replace("\x1b[31m\x1b", "")  # as the file has it; colours have other places
    assert err.count("\n") <= 1
    if environment.has_output and code == 0 and name != "recalibrate":
        assert out.strip()


def by_name(name):
    return next(e for e in ENVIRONMENTS if e.name == name)


@pytest.mark.parametrize("name", SAMPLE)
def test_some(folder, name):
    check(by_name(name), "estimate", folder)


@pytest.mark.study
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda e: e.name)
def test_all(folder, environment, name):
    check(environment, name, folder)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the superuser writes anywhere")
def test_a_folder_that_cannot_be_written(folder):
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        for name in ("recalibrate", "monitor", "report"):
            found = started(Environment("plain"), COMMANDS[name][0], folder)
            assert found.returncode == 2
            assert b"nothing can be written to the folder" in found.stderr
    finally:
        folder.chmod(stat.S_IRWXU)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder that nobody can write to")
@pytest.mark.parametrize(
    "name", ["monitor", *(pytest.param(n, marks=pytest.mark.study) for n in ("recalibrate", "report"))]
)
def test_a_folder_where_there_can_be_no_files(folder, name):
    arguments = [f"{folder}/{word}" if word == "x.csv" else word for word in COMMANDS[name][0]]
    found = started(Environment("plain"), [*arguments], "/proc/self")
    assert found.returncode == 2, found.stderr
    assert found.stderr.count(b"\n") == 1
    assert b"Traceback" not in found.stderr
