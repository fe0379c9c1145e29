"""The command of the studies."""

import pytest


@pytest.fixture
def run(capsys):
    """Run a study; its exit code, output and errors."""
    from studies.__main__ import main

    def call(*arguments):
        with pytest.raises(SystemExit) as left:
            main(list(arguments))
        shown = capsys.readouterr()
        return left.value.code, shown.out, shown.err

    return call
