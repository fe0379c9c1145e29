import shlex

import pytest


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """A line as it is typed, in a folder of one's own: the code, and all that is read, in one line."""
    main = pytest.importorskip("calibrant.cli").main
    monkeypatch.chdir(tmp_path)

    def call(line):
        program, *words = shlex.split(line)
        assert program == "calibrant"
        with pytest.raises(SystemExit) as left:
            main(words)
        shown = capsys.readouterr()
        return left.value.code, " ".join((shown.out + shown.err).replace("│", " ").split())

    return call
