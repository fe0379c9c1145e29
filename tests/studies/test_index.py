"""Every figure and table of the four papers has a row and a status on the page of studies."""

import re
from pathlib import Path

import pytest

INDEX = Path(__file__).parents[2] / "docs" / "studies" / "index.md"
STATUSES = {"reproduced", "pattern reproduced", "corrected", "not yet run", "impossible here"}
ITEMS = {
    "Widmann": [*(f"Figure {i}" for i in range(1, 13))],
    "Berta": ["Figure 1", "Figure 2", "Figure 3", "Table 1", "Table 2"],
    "Roelofs": [*(f"Figure {i}" for i in range(1, 16)), *(f"Table {i}" for i in range(1, 8))],
    "Popordanoska": [*(f"{kind} {i}" for kind in ("Figure", "Table") for i in range(1, 5))],
}


def rows(paper):
    """Cells of the table of a paper, without its head."""
    (part,) = re.findall(rf"### {paper}.*?\n(.*?)(?=\n##|\n```|\Z)", INDEX.read_text("utf-8"), flags=re.DOTALL)
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize("paper", ITEMS)
def test_every_item_has_one_of_the_statuses(paper):
    found = rows(paper)
    assert [row[0] for row in found] == ITEMS[paper]
    for item, what, status, how in found:
        assert status in STATUSES, item
        assert what, item
        assert len(how) > 15, item


def test_what_was_not_run_has_a_command_that_exists():
    commands = [how for paper in ITEMS for *_, status, how in rows(paper) if status == "not yet run"]
    assert commands
    for how in commands:
        assert "needs a GPU" in how
        (module,) = re.findall(r"`python -m ([a-z.]+) ", how)
        assert (INDEX.parents[2] / (module.replace(".", "/") + ".py")).exists()


def test_the_statuses_are_explained():
    text = INDEX.read_text("utf-8")
    for status in STATUSES:
        assert f"\n| {status} | " in text
    assert "FIG_" not in text
