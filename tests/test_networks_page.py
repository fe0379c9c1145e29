"""Commands of docs/guide/networks.md print what the page says; its examples in Python are run with those of all pages."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(
    r"^```(sh|text)\n(.*?)^```", (ROOT / "docs" / "guide" / "networks.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
)


def plain(shown):
    """Words without boxes and line breaks."""
    return " ".join(re.sub("[│╭╮╰╯─]", " ", shown).split())


def test_what_is_shown_follows_a_command():
    kinds = [kind for kind, _ in BLOCKS]
    assert kinds.count("text") >= 3
    assert kinds[0] == "sh"


@pytest.mark.study
def test_commands_print_what_the_page_says(tmp_path):
    (tmp_path / "studies").symlink_to(ROOT / "studies")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    shown = ""
    for kind, text in BLOCKS:
        if kind == "sh":
            command = ["bash", "-e", "-c", text]
            done = subprocess.run(
                command, cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
            shown += plain(done.stdout) + " "
        else:
            assert plain(text) in shown
