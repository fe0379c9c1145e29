import subprocess
import sys

import pytest

pytest.importorskip("cyclopts")

from calibrant.cli import program as module
from calibrant.cli.program import HOMES, program


def test_help_names_every_command(run):
    code, out, _ = run("--help")
    assert code == 0
    for command in ("demo", "report", "estimate", "test", "recalibrate", "simulate"):
        assert command in out


def test_help_loads_no_numbers():
    """Commands load what they run: the list of commands answers at once."""
    code = (
        "import sys; from calibrant.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print({'numpy', 'scipy', 'polars'} & set(sys.modules), file=sys.stderr)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr == "set()\n"


def test_estimates_load_no_reports():
    code = "import sys, calibrant.cli.commands; print([m for m in sys.modules if m.startswith('calibrant.reports.')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_a_command_says_of_itself_what_its_function_says():
    for app in (program(), program(["report"]), program([])):
        for name in HOMES:
            assert app[name].help
    assert program()["report"].help == program([])["report"].help


def test_the_program_has_an_attribute_for_the_reference():
    assert module.app.name == ("calibrant",)
    with pytest.raises(AttributeError, match="has no attribute 'nobody'"):
        module.nobody  # noqa: B018
