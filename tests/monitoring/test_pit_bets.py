import numpy as np
import pytest
from scipy.stats import kstest

from calibrant import Ensemble, Normal, Poisson
from calibrant.estimators import PIT
from calibrant.monitoring.pit_bets import pit_by_row


def test_without_chance_they_are_those_of_pit():
    y, predictions = np.array([0.3, -1.0]), Normal([0.0, 0.5], 1.0)
    np.testing.assert_array_equal(pit_by_row(y, predictions, 7, [0]), PIT()(y, predictions))


def test_random_levels_of_calibrated_counts_are_uniform():
    rng = np.random.default_rng(0)
    rate = rng.gamma(2, 1, 4000)
    assert kstest(pit_by_row(rng.poisson(rate), Poisson(rate), 0, [1]), "uniform").pvalue > 0.01


@pytest.mark.parametrize("predictions", [Poisson(np.full(9, 1.5)), Ensemble(np.tile([0.0, 1.0, 2.0], (9, 1)))])
def test_a_row_has_its_own_number(predictions):
    y = np.arange(9) % 3
    whole = pit_by_row(y, predictions, 100, [0, 1])
    parts = [pit_by_row(y[i : i + 3], predictions[i : i + 3], 100 + i, [0, 1]) for i in (0, 3, 6)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert not np.array_equal(pit_by_row(y, predictions, 100, [0, 2]), whole)
    assert not np.array_equal(pit_by_row(y, predictions, 101, [0, 1]), whole)
