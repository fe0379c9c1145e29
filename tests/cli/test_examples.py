"""Every example of every help, and of the guide, runs as it is written; those that read what others write find it there."""

import re
from pathlib import Path

import pytest

from calibrant.cli.manual import EXAMPLES, FIRST_STEPS

pytest.importorskip("cyclopts")
pytest.importorskip("polars")
pytest.importorskip("matplotlib")

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "command-line.md"

HELP = {f"{name}-{i}": example.command for name, examples in EXAMPLES.items() for i, example in enumerate(examples)}
ALL = {**HELP, **{f"first-{i}": x.command for i, x in enumerate(FIRST_STEPS) if x.command not in HELP.values()}}


@pytest.mark.parametrize("name", ALL)
def test_example_runs(name, shell, few_rows, monkeypatch, tmp_path):
    _check(ALL[name], shell, few_rows, monkeypatch, tmp_path)


@pytest.mark.skipif(not GUIDE.exists(), reason="the guide is not beside the tests")
def test_the_guide_runs(shell, few_rows, monkeypatch, tmp_path):
    blocks = re.findall(r"^```sh\n(.*?)^```", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    known = {command for command in ALL.values() if " > " not in command and " --save " not in command}
    commands = [line for block in blocks for line in block.splitlines() if line not in known]
    assert len(commands) >= 10
    for command in commands:
        _check(command, shell, few_rows, monkeypatch, tmp_path)


def _check(command, shell, few_rows, monkeypatch, tmp_path):
    # The demo writes the files that others read: not over our shorter ones.
    monkeypatch.chdir(tmp_path if " demo" in command else few_rows)
    code, out, err = shell(command)
    assert code == 0, err
    assert len(out) > 50 or " --out - " in command or "completion" in command
