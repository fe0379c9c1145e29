import numpy as np
import pytest
from scipy.stats import binom, chi2

from calibrant import SKCE, Categorical, Normal
from calibrant.estimators import RandomFeatureSKCE
from calibrant.estimators.kernel_errors.kernel_resamples import work_of_resample
from calibrant.estimators.kernel_errors.kernel_sums import PairSpread
from calibrant.estimators.kernel_errors.skce import PairLimits
from calibrant.kernels import Exponential, Gaussian

UNIT = SKCE(Exponential(1.0), Gaussian(1.0))


def shifted(rng, n, shift):
    loc = rng.normal(size=n)
    return loc + shift + rng.normal(size=n), Normal(loc, 1.0)


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("block", [None, 10])
def test_the_squared_error_is_covered(shift, block, rng):
    """Also where it is zero: there the normal interval of one estimate in five lay below it."""
    truth = UNIT(*shifted(rng, 3000, shift)).value if shift else 0.0
    count = 0
    for _ in range(100):
        low, high = SKCE(Exponential(1.0), Gaussian(1.0), block=block)(*shifted(rng, 60, shift)).confidence_interval()
        assert 0 <= low <= high
        count += low <= 1.03 * truth and 0.97 * truth <= high
    assert count >= binom.ppf(0.0005, 100, 0.95)


def test_rare_events_are_covered(rng):
    """Where none was seen, both ends reckon with one."""
    count = 0
    for _ in range(100):
        p = np.full(1000, 0.001)
        low, high = SKCE(Exponential(0.3))((rng.random(1000) < p).astype(int), p).confidence_interval()
        count += low == 0 and high >= 2 * 0.003**2
    assert count >= binom.ppf(0.0005, 100, 0.95)


def test_a_clear_error_has_the_normal_interval(rng):
    found = UNIT(*shifted(rng, 1000, 1.0))
    low, high = found.confidence_interval()
    assert high - found.value == pytest.approx(1.96 * found.standard_error, rel=0.01)
    assert found.value - low == pytest.approx(1.96 * found.standard_error, rel=0.05)


def test_the_biased_estimate_has_none(rng):
    """It had that of the unbiased one around itself: 0 % coverage in ten dimensions."""
    found = SKCE(Exponential(1.0), Gaussian(1.0), unbiased=False)(*shifted(rng, 50, 0.0))
    assert "unbiased=True has an interval" in found.withheld
    with pytest.raises(ValueError, match="this SKCE has no interval"):
        found.confidence_interval()


@pytest.mark.parametrize("value", [0.5, 2.0])
def test_the_lower_limit_allows_for_a_single_square(value):
    """Noise of one direction: ``value`` less its mean of one, whose upper quantile is that of chi-square."""
    low, _ = PairLimits(value, PairSpread(0.0, 0.01), 0.0)(0.9)
    assert low == pytest.approx(max(value - 0.1 * (chi2.ppf(0.95, 1) - 1) / 2**0.5, 0), rel=1e-9)


def test_what_costs_the_budget_exactly_is_done(rng):
    predictions = Categorical(rng.dirichlet(np.ones(3), 50))
    work = work_of_resample(Exponential(0.5), predictions, 3)
    asked = [SKCE(Exponential(0.5)).affordable(predictions, 20, b) for b in (20 * work, 20 * work - 1)]
    assert [type(estimator) for estimator in asked] == [SKCE, RandomFeatureSKCE]
