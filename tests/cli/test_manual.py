import re

import pytest

from calibrant.cli import manual
from calibrant.cli.manual import EXAMPLES

pytest.importorskip("cyclopts")

from calibrant.cli.program import HOMES, program


def test_every_command_has_examples_and_every_example_a_command():
    assert {name for name in program() if not name.startswith("-")} == set(EXAMPLES) == set(HOMES)


def test_the_front_page_teaches(run):
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    places = [out.index(words) for words in ("Can I believe", "demo", "First steps:", "Then:", "Exit codes:")]
    assert places == sorted(places)
    for example in manual.FIRST_STEPS:
        assert example.wish in out
    for exit_code, meaning in manual.EXIT_CODES.items():
        assert re.search(rf"^  {exit_code} +{re.escape(meaning)}$", out, re.MULTILINE)


@pytest.mark.parametrize("command", EXAMPLES)
def test_every_command_shows_its_examples_whole(run, command):
    code, out, err = run(command, "--help")
    assert (code, err) == (0, "")
    for example in EXAMPLES[command]:
        for line in manual.wrapped(example.command, manual.WIDTH - 4).splitlines():
            assert f"    {line}\n" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "Exit codes: 0" in out
    if command in ("report", "test", "estimate", "recalibrate"):
        assert [out.index(f"─ {group} ") for group in ("Data", "Output", "Settings")]
    assert "()]" not in out


def test_a_broken_line_is_one_command():
    for examples in EXAMPLES.values():
        for example in examples:
            lines = manual.wrapped(example.command)
            assert max(map(len, lines.splitlines())) <= manual.WIDTH
            assert re.sub(r" \\\n +", " ", lines) == example.command


def test_paragraphs_of_a_docstring():
    text = manual.description("One.\n\n    Two\n    lines.\n\n    Parameters\n    ----------\n    x\n        y\n    ")
    assert text == "One.\n\nTwo lines."


@pytest.mark.parametrize("command", EXAMPLES)
def test_every_option_is_explained(command):
    for argument in program()[command].assemble_argument_collection(parse_docstring=True):
        if argument.show:
            assert argument.parameter.help, f"{command} {argument.name}"
