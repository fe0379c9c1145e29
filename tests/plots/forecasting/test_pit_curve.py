import numpy as np
import pytest
from scipy.stats import norm

from calibrant import Normal
from calibrant.plots import pit_curve


def test_the_curve_is_the_share_up_to_each_level_less_the_level(rng):
    y = rng.normal(0, 2, 300)
    display = pit_curve(y, Normal(np.zeros(300), 1.0))
    curve = display.tables["pit_curve"]
    share = (norm.cdf(y)[:, None] <= curve["level"]).mean(axis=0)
    np.testing.assert_allclose(curve["observed"], share)
    line = next(line for line in display.ax_.lines if len(line.get_xdata()) == curve.n_rows + 2)
    np.testing.assert_allclose(line.get_ydata()[1:-1], 100 * (share - curve["level"]))
    assert line.get_ydata()[[0, -1]].tolist() == [0, 0]


def test_what_is_beyond_the_band_is_marked(rng):
    display = pit_curve(rng.normal(0, 2, 300), Normal(np.zeros(300), 1.0))
    curve = display.tables["pit_curve"]
    outside = (curve["observed"] < curve["low"]) | (curve["observed"] > curve["high"])
    wrong = display.ax_.lines[-1].get_ydata()
    np.testing.assert_array_equal(np.isfinite(wrong), outside)
    assert outside.any()


@pytest.mark.parametrize("n", [1, 2])
def test_little_data_is_drawn(n):
    assert "nan" not in pit_curve([0.3] * n, Normal([0.0] * n, 1.0)).to_svg()


def test_weights_count(rng):
    y, weights = rng.normal(size=100), rng.random(100)
    curve = pit_curve(y, Normal(np.zeros(100), 1.0), sample_weight=weights).tables["pit_curve"]
    share = np.average(norm.cdf(y)[:, None] <= curve["level"], axis=0, weights=weights)
    np.testing.assert_allclose(curve["observed"], share)
