import numpy as np
import pytest
from scipy.stats import norm

import calibrant
from calibrant import Ensemble, Normal
from calibrant._validate import InputError
from calibrant.plots import CoverageDisplay, coverage


def test_shares_are_those_of_the_function_of_the_same_name(rng):
    y = rng.normal(0, 1.5, 200)
    forecast = Normal(np.zeros(200), 1.0)
    weights = rng.random(200)
    display = coverage(y, forecast, levels=[0.5, 0.9], sample_weight=weights)
    direct = calibrant.coverage(y, forecast, levels=[0.5, 0.9], sample_weight=weights)
    np.testing.assert_array_equal(display.tables["coverage"]["observed"], direct["observed"])
    inside = np.abs(y)[:, None] <= norm.ppf([0.75, 0.95])
    np.testing.assert_allclose(direct["observed"], np.average(inside, axis=0, weights=weights))
    line = next(line for line in display.ax_.lines if len(line.get_xdata()) == 2 and line.get_xdata()[0] > 40)
    np.testing.assert_allclose(line.get_ydata(), 100 * direct["observed"])


def test_calibrated_ensembles_hold_what_they_promise(rng):
    """Nine members and the outcome are alike; from the third to the seventh member lie four of ten ranks, not half."""
    draws = rng.normal(size=(4000, 10))
    table = CoverageDisplay.from_predictions(draws[:, 0], Ensemble(draws[:, 1:]), levels=[0.5]).tables["coverage"]
    assert abs(table["observed"][0] - 0.5) < 4 * np.sqrt(0.25 / 4000)


def test_one_row_is_drawn():
    assert "nan" not in coverage([0.3], Normal([0.0], 1.0)).to_svg()


def test_levels_are_checked():
    with pytest.raises(InputError, match="levels must lie strictly between 0 and 1; got 95"):
        coverage([0.3], Normal([0.0], 1.0), levels=[95])
