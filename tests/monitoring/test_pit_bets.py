import numpy as np
import pytest
from scipy.stats import kstest

from calibrant import Ensemble, Normal, Poisson
from calibrant.estimators import PIT
from calibrant.monitoring.bets import Defect
from calibrant.monitoring.pit_bets import PITBets, pit_by_row
from calibrant.results import Finding


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


@pytest.mark.parametrize(
    ("part", "cell"),
    [(0, "below the 10 % quantile"), (1, "between the 10 % and the 90 % quantile"), (2, "above the 90 % quantile")],
)
@pytest.mark.parametrize(("way", "often"), [(Finding.TOO_LOW, "often"), (Finding.TOO_HIGH, "rarely")])
def test_cells_between_quantiles_in_words(part, cell, way, often):
    assert (
        PITBets(given=(0.1, 0.9)).words(Defect(Finding.LOCAL, way, None, part)) == f"outcomes fall {cell} too {often}"
    )
