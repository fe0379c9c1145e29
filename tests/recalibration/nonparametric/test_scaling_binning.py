import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant import EqualMass
from calibrant._validate import InputError
from calibrant.recalibration import HistogramBinning, Platt, ScalingBinning


@pytest.fixture
def rows(rng):
    p = rng.beta(0.5, 0.5, 1_000)
    return (rng.random(1_000) < expit(0.4 * logit(p) + 0.3)).astype(int), p


def test_means_of_platt_scaling_in_bins_of_its_outputs(rows):
    y, p = rows
    scaled = Platt().fit(y, p, folds=0)(p)
    index = EqualMass(10).bins(scaled).index(scaled)
    means = np.array([scaled[index == b].mean() for b in range(10)])
    assert ScalingBinning(10).fit(y, p, folds=0)(p) == pytest.approx(means[index], abs=1e-9)


def test_scores_that_point_the_wrong_way(rows):
    """Platt scaling with a negative slope: bins of its outputs are still bins of the scores."""
    y, p = rows
    found = ScalingBinning(10).fit(1 - y, p, folds=0)
    assert found(p) == pytest.approx(1 - ScalingBinning(10).fit(y, p, folds=0)(p), abs=1e-6)


def test_fewer_numbers_are_fitted_than_by_histogram_binning(rng):
    """Of 30 data sets of 200 rows with 20 bins, the mean squared error to the truth."""
    error = {ScalingBinning: 0.0, HistogramBinning: 0.0}
    for _ in range(30):
        p = rng.beta(0.5, 0.5, 200)
        truth = expit(0.4 * logit(p))
        y = (rng.random(200) < truth).astype(int)
        for kind in error:
            error[kind] += ((kind(20).fit(y, p, folds=0)(p) - truth) ** 2).mean() / 30
    assert error[ScalingBinning] < error[HistogramBinning] / 2


def test_bad_settings():
    with pytest.raises(InputError, match="n_bins must be a whole number of at least 1; got 0"):
        ScalingBinning(0)
