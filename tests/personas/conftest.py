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
