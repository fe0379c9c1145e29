import numpy as np
import pytest

from calibrant import SKCE
from calibrant.kernels import Exponential, Gaussian
from studies.widmann.estimator_error import BOUND, ESTIMATORS, SIZES, TRUTH, Cell, data_set, estimates, published, study


def test_estimates_are_those_of_the_estimators(rng):
    cell = Cell("uncalibrated", 10, 16)
    y, predictions = data_set(cell, np.random.default_rng(1))
    kernels = Exponential(1.0), Gaussian(1.0)
    expected = [SKCE(*kernels, unbiased=False), SKCE(*kernels, block=2), SKCE(*kernels, block=4), SKCE(*kernels)]
    values = estimates(cell, np.random.default_rng(1))
    assert values == pytest.approx([e(y, predictions).value for e in expected], rel=1e-12)


@pytest.mark.parametrize("d", [1, 10])
def test_the_population_value_by_simulation(d):
    """The mean of one off-diagonal term over independent pairs of rows."""
    y, predictions = data_set(Cell("uncalibrated", d, 200_000), np.random.default_rng(2))
    result = SKCE(Exponential(1.0), Gaussian(1.0), block=2)(y, predictions)
    assert abs(result.value - TRUTH["uncalibrated", d]) < 4 * result.standard_error


def test_the_published_table_is_complete():
    assert set(published()) == {
        (model, d, name, n)
        for model in ("calibrated", "uncalibrated")
        for d in (1, 10)
        for name in ESTIMATORS
        for n in SIZES
    }


def test_small_cells_agree_with_the_published_ones():
    table = study(500, sizes=(4, 16), seed=1)
    assert table.n_rows == 32
    assert max(table["error_z"]) < BOUND
    assert max(table["variance_z"]) < BOUND


def test_a_wrong_truth_would_be_noticed(monkeypatch):
    monkeypatch.setitem(TRUTH, ("uncalibrated", 1), 0.15)
    assert max(study(500, sizes=(64,), seed=1)["error_z"]) > BOUND


@pytest.mark.study
def test_all_cells_agree_with_the_published_ones():
    table = study()
    assert table.n_rows == 80
    assert max(table["error_z"]) < BOUND
    assert max(table["variance_z"]) < BOUND
    assert np.median(table["error_z"]) < 1.5
