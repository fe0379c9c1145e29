import shlex

import pytest

from calibrant.cli import main


@pytest.fixture
def run(capsys):
    """Run a command; its exit code, output and errors, of which a terminal breaks no lines."""

    def call(*arguments):
        with pytest.raises(SystemExit) as left:
            main(list(arguments))
        shown = capsys.readouterr()
        return left.value.code, shown.out, shown.err

    return call


@pytest.fixture
def typed(run, tmp_path, monkeypatch):
    """A line as it is typed, in a folder of one's own: the code, and all that is read, in one line."""
    monkeypatch.chdir(tmp_path)

    def call(line):
        program, *words = shlex.split(line)
        assert program == "calibrant"
        code, out, err = run(*words)
        return code, " ".join((out + err).replace("│", " ").split())

    return call
