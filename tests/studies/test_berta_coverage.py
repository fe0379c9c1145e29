import numpy as np
import pytest

from studies.berta.bounds import BOUND, _row, figure, study, summary
from studies.berta.data import SCENARIOS, truth


@pytest.fixture(scope="module")
def small():
    return study(100, scenarios=("calibrated, 2 classes", "under-confident, 2 classes"), sizes=(300,))


def test_bounds_hold_about_as_often_as_promised(small):
    """Limits of 100 data sets: fewer than 89 would be one in a hundred."""
    assert min(small["share"]) >= 0.89
    assert max(small["part"]) <= BOUND


def test_bounds_without_an_error_would_be_noticed(monkeypatch):
    from calibrant.estimators import variational

    monkeypatch.setattr(variational, "ndtri", lambda level: 0.0)
    table = study(100, scenarios=("calibrated, 2 classes",), sizes=(300,))
    assert table["part"][0] > BOUND


def test_a_row_by_hand():
    error = truth("shifted, 2 classes")
    values = np.array([[error, 0.1, error - 1e-9], [error + 0.2, 0.1, error + 1e-9]] * 50)
    row = _row("shifted, 2 classes", 10, values)
    assert (row["share"], row["data_sets"]) == (0.5, 100)
    assert row["mean"] == pytest.approx(error + 0.1)
    assert row["claimed"] == pytest.approx(0.1)
    assert row["low"] == pytest.approx(0.3983, abs=1e-4)  # Clopper and Pearson, 50 of 100
    assert row["part"] == pytest.approx((0.96 - row["high"]) / 0.03)


def test_settings_of_the_estimator_and_what_is_kept(tmp_path, monkeypatch):
    options = {"scenarios": ("over-confident, 2 classes",), "sizes": (200,), "folder": tmp_path}
    soft = study(5, **options)
    assert study(5, **options)["mean"] == soft["mean"]
    hard = study(5, **{**options, "folder": None}, settings={"sign": "hard"})
    assert hard["mean"] != soft["mean"]


def test_the_page(small):
    table = summary(small)
    assert list(table)[:3] == ["scenario", "n", "share"]
    drawn = figure(small)
    assert len([axes for axes in drawn.axes if axes.has_data()]) == 1


@pytest.mark.study
def test_all_of_it():
    table = study()
    assert set(table["scenario"]) == set(SCENARIOS)
    assert max(table["part"]) <= BOUND
