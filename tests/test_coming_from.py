"""The calls of other libraries, and ours beside them: every row of ``docs/coming-from.md`` is run.

Where the page says "same", both are compared, if their library is installed.
"""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "coming-from.md").read_text("utf-8")
SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)
DATA = re.sub(
    r"^(>>>|\.\.\.) ?", "", re.search(r"```python\n(.*?)>>> ECE", SECTIONS[0], re.DOTALL)[1], flags=re.MULTILINE
)
CODE = re.compile(r"`([^`]+)`")


def rows():
    """Section, their call, our call, and what is said of the two."""
    for section in SECTIONS[1:]:
        title = section.partition("\n")[0]
        for line in re.findall(r"^\| `.*\|$", section, re.MULTILINE):
            theirs, ours, said = (cell.strip() for cell in line.strip("|").split("|"))
            yield pytest.param(section, CODE.search(theirs)[1], CODE.search(ours)[1], said, id=f"{title}: {ours[:60]}")


SINCE = {"brier_score_loss(k, P)": "1.7"}
"""From which release on a call takes what it is given here."""


def setting(section, wanted):
    """The names that a section's code makes, line by line: what only the other library needs may be missing."""
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(DATA, names)
        for line in re.search(r"```python\n(.*?)```", section, re.DOTALL)[1].splitlines():
            try:
                exec(line, names)
            except ModuleNotFoundError as missing:
                if missing.name.partition(".")[0] in wanted:
                    pytest.skip(f"needs {missing.name}")
    return names


def numbers(found):
    """A result, a tensor, probabilities or an array, as numbers."""
    return np.asarray(getattr(found, "probs", found), dtype=np.float64)


@pytest.mark.parametrize(("section", "theirs", "ours", "said"), list(rows()))
def test_a_row_of_the_page(section, theirs, ours, said):
    pytest.importorskip("matplotlib").use("Agg")
    names = setting(section, {"sklearn"} if "sklearn" in section else {"torch"} if "import torch" in section else set())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of maps that make held-out rows worse, as the page says
        found = eval(ours, names)
    assert found is not None
    if said.startswith("same"):
        library = section.partition("\n")[0].replace("-", "_").replace("scikit_learn", "sklearn")
        pytest.importorskip(library, minversion=SINCE.get(theirs))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = eval(theirs, names)
        assert numbers(found) == pytest.approx(numbers(expected), rel=1e-5, abs=2e-6)


def test_the_page_compares_many_calls():
    found = [row.values for row in rows()]
    assert len(found) > 35
    assert sum(said.startswith("same") for *_, said in found) > 25
