import io
import os
import subprocess
import sys

import pytest

console = pytest.importorskip("calibrant.cli.console")

ESCAPE = "\x1b["


@pytest.mark.parametrize(
    ("environment", "options"),
    [
        ({}, {}),
        ({"NO_COLOR": ""}, {}),
        ({"NO_COLOR": "1"}, {"no_color": True}),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, {"no_color": True, "force_terminal": False}),
        ({"FORCE_COLOR": "1"}, {"force_terminal": True}),
        ({"FORCE_COLOR": "0"}, {"no_color": True, "force_terminal": False}),
        ({"CLICOLOR_FORCE": "1"}, {"force_terminal": True}),
        ({"CLICOLOR_FORCE": "0"}, {}),
        ({"CLICOLOR": "0"}, {"no_color": True}),
        ({"CLICOLOR": "1"}, {}),
        ({"CLICOLOR": "0", "CLICOLOR_FORCE": "1"}, {"force_terminal": True}),
    ],
)
def test_what_the_usual_variables_say(environment, options):
    assert console.colour_options(environment) == options


def shown(command, **environment):
    """What a command writes to a pipe, in a process of its own."""
    names = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM", "COLUMNS")
    inherited = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-m", "calibrant", *command], env={**inherited, **environment}, capture_output=True, text=True
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("environment", "has_colours"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "0"}, False),
    ],
)
def test_pipes_have_colours_where_they_are_forced(environment, has_colours):
    assert (ESCAPE in shown(["doctor", "--help"], TERM="xterm-256color", **environment)) is has_colours


def in_a_terminal(command, **environment):
    """What a command writes to a terminal of its own."""
    pty = pytest.importorskip("pty")
    main, other = pty.openpty()
    names = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM", "COLUMNS")
    inherited = {name: value for name, value in os.environ.items() if name not in names}
    child = subprocess.Popen(
        [sys.executable, "-m", "calibrant", *command],
        env={**inherited, **environment},
        stdin=other,
        stdout=other,
        stderr=other,
    )
    os.close(other)
    text = b""
    while True:
        try:
            part = os.read(main, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part
    os.close(main)
    return child.wait(), text.decode()


@pytest.mark.parametrize(
    ("environment", "has_colours"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, False),
        ({"TERM": "xterm-256color", "CLICOLOR": "0"}, False),
        ({"TERM": "dumb"}, False),
    ],
)
def test_terminals_have_colours_unless_they_are_refused(environment, has_colours, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("y,p\n" + "1,0.9\n0,0.2\n" * 40)
    code, text = in_a_terminal(["test", str(path), "--n-resamples", "99"], **environment)
    assert code == 0
    assert "calibrat" in text
    assert (f"{ESCAPE}31m" in text or f"{ESCAPE}32m" in text) is has_colours


def test_somebody_looks_on_at_a_terminal_only():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    watched = console.Stream(file=Terminal(), force_terminal=True, _environ={"TERM": "xterm"})
    dumb = console.Stream(file=Terminal(), force_terminal=True, _environ={"TERM": "dumb"})
    forced = console.Stream(file=io.StringIO(), force_terminal=True, _environ={"TERM": "xterm"})
    assert [console.is_watched(stream) for stream in (watched, dumb, forced)] == [True, False, False]


def test_aside_goes_to_the_error_stream(capsys):
    with console.aside():
        console.say("beside")
    with console.aside(False):
        console.say("[b]as it is[/b]")
    console.complain("wrong")
    assert capsys.readouterr() == ("[b]as it is[/b]\n", "beside\nwrong\n")


def test_what_a_stream_has_no_letter_for_is_spelt_as_json_does(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1", newline="")
    monkeypatch.setattr(sys, "stdout", stream)
    console.emit("é → 😀")
    assert stream.buffer.getvalue().decode("latin-1") == "é \\u2192 \\ud83d\\ude00\n"
