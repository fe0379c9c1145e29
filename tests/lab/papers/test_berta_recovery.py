import numpy as np
import pytest

from calibrant.lab.papers import berta_recovery
from calibrant.lab.papers.berta_data import SCENARIOS, SIZES
from calibrant.lab.papers.berta_recovery import BOOSTING, SOFT, published, recovery

AVERAGES = dict(zip(SCENARIOS, (1.43, 1.39, 0.70, 1.90, 2.00, 1.86, 1.99, 1.99, 1.29, 3.93), strict=True))
"""Root mean squared errors of boosting in hundredths, averaged over sizes."""


def test_the_published_table():
    known = published()
    assert len(known) == 4 * len(SCENARIOS) * len(SIZES)
    assert sum(cell.runs == 10 for cell in known.values()) == 565
    for name, average in AVERAGES.items():
        assert 100 * np.mean([known[name, n, BOOSTING].rmse for n in SIZES]) == pytest.approx(average, abs=0.005)


@pytest.fixture(scope="module")
def small():
    return recovery(10, ("over-confident, 2 classes", "calibrated, 3 classes"), (200, 264), 0, None, None)


def test_methods_of_the_paper_have_its_digits(small):
    parts = {(row["scenario"], row["method"]): row["part"] for row in small if row["n"] == 264}
    for (name, method), part in parts.items():
        if method.startswith("isotonic") or (method == "bins" and name.endswith(" 2 classes")):
            assert part <= 0.51
        elif method in ("hard sign", BOOSTING):
            assert np.isnan(part)
    assert parts["calibrated, 3 classes", "bins"] < 1


def test_numbers_over_all_sizes(small):
    rows = {row["n"]: row for row in small if row["scenario"] == "over-confident, 2 classes" and row["method"] == SOFT}
    cells = [published()["over-confident, 2 classes", n, BOOSTING] for n in rows]
    ratio = sum(row["rmse"] for row in rows.values()) / sum(cell.rmse for cell in cells)
    above = sum(row["mean"] - row["truth"] for row in rows.values()) / np.hypot(
        *(row["error"] for row in rows.values())
    )
    for row in rows.values():
        assert row["ratio"] == pytest.approx(ratio)
        assert row["above"] == pytest.approx(above)
        here = (row["mean"] - row["truth"]) / row["error"]
        assert row["part"] == pytest.approx(max(ratio / 1.1, above / 2, here / 2))


def test_other_experiments_are_not_compared_digit_by_digit():
    rows = recovery(3, ("over-confident, 2 classes",), (200,), 5, None, None)
    assert all(np.isnan(row["part"]) for row in rows if row["method"].startswith("isotonic"))


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"scenario": "calibrated, 2 classes", "above": -3.0}, 1.5),  # not below either
        ({"above": -4.5}, 0.5 / 1.1),
        ({"above": 3.0}, 1.5),
        ({"mean": 0.08}, 3.06),
        ({"ratio": 1.21}, 1.1),
    ],
)
def test_what_soft_signs_use_up(change, part):
    row = {"scenario": "shifted, 2 classes", "method": SOFT, "ratio": 0.5, "above": 0.0}
    row |= {"mean": 0.0188, "truth": 0.0188, "error": 0.01} | change
    assert berta_recovery._part(row, is_same=True) == pytest.approx(part)


def test_finished_experiments_are_kept(tmp_path, monkeypatch):
    options = (2, ("calibrated, 2 classes",), (200,), 0, None, tmp_path / "berta.jsonl")
    first = recovery(*options)
    monkeypatch.setattr(berta_recovery, "_experiment", pytest.fail)
    again = recovery(*options)
    assert [row["mean"] for row in again] == [row["mean"] for row in first]
