import numpy as np
import pytest
from scipy.stats import binom

from calibrant import ClassWise, EqualMass, EqualWidth, ReliabilityCurve, TopLabel
from calibrant._validate import InputError


def test_the_band_of_equal_predictions_is_binomial(rng):
    p = np.repeat([0.2, 0.7], 50)
    curve = ReliabilityCurve(EqualWidth(2), n_resamples=20_000)(rng.integers(0, 2, 100), p)
    low, high = binom.interval(0.95, 50, [0.2, 0.7])
    assert curve["low"] * 50 == pytest.approx(low, abs=1)
    assert curve["high"] * 50 == pytest.approx(high, abs=1)


def test_the_band_holds_95_percent_in_each_bin(rng):
    p = rng.random(300)
    inside = []
    for repetition in range(200):
        y = (rng.random(300) < p).astype(int)
        curve = ReliabilityCurve(EqualMass(5), n_resamples=199)(y, p, rng=repetition)
        inside.append((curve["low"] <= curve["observed"]) & (curve["observed"] <= curve["high"]))
    assert 0.94 < np.mean(inside) < 0.99


def test_several_events_and_weights(rng):
    p = rng.dirichlet(np.ones(3), 90)
    y = rng.integers(0, 3, 90)
    curve = ReliabilityCurve(EqualMass(4), ClassWise(), n_resamples=49)(y, p, sample_weight=rng.random(90))
    assert curve.n_rows == 12
    assert sorted(set(curve["event"])) == ["0", "1", "2"]
    assert np.all(curve["low"] <= curve["high"])
    assert ReliabilityCurve(EqualMass(4), TopLabel(), n_resamples=49)(y, p).n_rows == 4


def test_settings_are_checked():
    with pytest.raises(InputError, match="level must lie strictly between 0 and 1; got 1.0"):
        ReliabilityCurve(level=1.0)
    with pytest.raises(InputError, match="n_resamples must be a whole number"):
        ReliabilityCurve(n_resamples=0)
