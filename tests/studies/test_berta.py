import numpy as np
import pytest

from studies.berta.data import SCENARIOS
from studies.berta.recovery import SOFT
from studies.berta.variational import BOUND, TABLE_2, figure, sections, study, summary

SOME = ("calibrated, 2 classes", "shifted, 2 classes", "over-confident, 3 classes")


@pytest.fixture(scope="module")
def small():
    return study(10, scenarios=SOME, sizes=(200, 264))


def test_every_method_at_every_size_and_table_2(small):
    assert small.n_rows == len(SOME) * 2 * 6 + 9
    assert np.all(np.isfinite(small["mean"]))
    assert np.isnan(small["part"]).sum() == len(SOME) * 2 * 2  # hard signs and boosting


def test_what_is_to_be_shown_holds_in_part(small):
    """Of the digits of the paper, and table 2; two sizes say little of soft signs."""
    others = small["method"] != SOFT
    assert np.nanmax(small["part"][others]) <= BOUND


def test_the_page(small):
    table = summary(small)
    assert table.n_rows == (len(SOME) + 1) * 6
    assert not any(name.startswith(TABLE_2) for name in table["scenario"])
    by_row = {(row["scenario"], row["method"]): row for row in table.rows()}
    assert by_row["shifted, 2 classes", "boosting"]["ratio"] == "1.00"
    ratios = {row["scenario"]: row["ratio"] for row in small.rows() if row["method"] == SOFT}
    assert by_row["mean", SOFT]["ratio"] == f"{np.mean(list(ratios.values())):.2f}"
    assert float(by_row["calibrated, 2 classes", "isotonic, in sample"]["above"]) > 10
    drawn = figure(small)
    assert len([axes for axes in drawn.axes if axes.has_data()]) == 2
    three, two = sections(small)
    assert len([axes for axes in three.figure.axes if axes.has_data()]) == 1
    assert two.table["error"].tolist() == ["total", "over-confidence", "under-confidence"]
    assert "(0.1274 ± 0.0027)" in two.table["over-confident"][0]


@pytest.mark.study
def test_all_of_it():
    """Soft signs are at least as close to the truth as boosting on average, and nowhere more than a tenth further off."""
    table = study()
    assert np.nanmax(table["part"]) <= BOUND
    ratios = {row["scenario"]: row["ratio"] for row in table.rows() if row["method"] == SOFT}
    assert set(ratios) == set(SCENARIOS)
    assert np.mean(list(ratios.values())) < 1
