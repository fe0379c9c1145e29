import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cyclopts")

from calibrant import cli
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


def test_memory_that_is_full_is_told(run, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr("calibrant.cli.doctor.diagnose", full)
    code, out, err = run("doctor")
    assert (code, out) == (2, "")
    assert "there is not enough memory: take fewer rows, or a machine with more" in err


def test_a_program_inside_of_a_thread_leaves_signals_alone():
    code = (
        "import signal, threading; from calibrant.cli import main\n"
        "before = signal.getsignal(signal.SIGTERM)\n"
        "def work():\n"
        "    try: main(['--version'])\n"
        "    except SystemExit as left: print(left.code, signal.getsignal(signal.SIGTERM) is before)\n"
        "one = threading.Thread(target=work); one.start(); one.join()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "0 True"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("word", ["--help", "--version"])
def test_an_output_that_takes_nothing_is_told(word):
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "calibrant", word], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no such signals on this system")
def test_children_end_at_once_when_they_are_told_to():
    before = signal.signal(signal.SIGTERM, cli._stop), signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        cli._reset()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGHUP, before[1])
