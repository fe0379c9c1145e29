import numpy as np
import pytest
from scipy.stats import binom

from calibrant import Ensemble, ExactTest, Normal, Poisson
from calibrant._validate import InputError
from calibrant.estimators import CentralCoverage


def test_it_is_the_coverage_of_central_intervals(rng):
    loc, scale = rng.normal(size=300), rng.uniform(0.5, 2, 300)
    y = loc + 1.3 * scale * rng.normal(size=300)
    inside = np.abs((y - loc) / scale) <= 1.6448536269514722
    found = CentralCoverage(0.9)(y, Normal(loc, scale))
    assert found.value == pytest.approx(inside.mean(), abs=1e-12)
    assert found.standard_error == pytest.approx(inside.std() / np.sqrt(300), rel=0.01)


@pytest.mark.parametrize("kind", ["counts", "ensemble"])
def test_ninety_percent_of_calibrated_forecasts_whose_levels_jump(kind, rng):
    """Intervals of counts, and those between members, hold more or less; levels at random hold what they should."""
    n = 20_000
    if kind == "counts":
        predictions = Poisson(rng.uniform(0.2, 3, n))
        y = predictions.sample(rng, 1)[0]
    else:
        predictions, y = Ensemble(rng.normal(size=(n, 7))), rng.normal(size=n)
    low, high = binom.interval(0.999, n, 0.9)
    assert low <= n * CentralCoverage(0.9)(y, predictions).value <= high


def test_resamples_are_those_of_plain_calls(rng):
    y, predictions = rng.normal(size=50), Normal(np.zeros(50), 1.0)
    stack = predictions.sample(rng, 4)
    found = CentralCoverage(0.5).given(predictions, None)(stack)
    assert found == pytest.approx([CentralCoverage(0.5)(draw, predictions).value for draw in stack])
    assert ExactTest(CentralCoverage(0.9), 199, "two-sided")(3 * y, predictions).pvalue < 0.02


def test_weights_are_repeated_rows(rng):
    y, predictions = rng.normal(size=4), Normal(np.zeros(4), 0.5)
    rows = np.array([0, 0, 1, 2, 2, 2])
    weighted = CentralCoverage(0.5)(y[:3], predictions[:3], sample_weight=[2, 1, 3]).value
    assert weighted == pytest.approx(CentralCoverage(0.5)(y[rows], predictions[rows]).value)


def test_bad_level():
    with pytest.raises(InputError, match="level must"):
        CentralCoverage(1.5)
