import numpy as np
import pytest

from calibrant import Ensemble, Normal
from calibrant.plots import SpreadDisplay, spread


@pytest.fixture
def narrow(rng):
    std = rng.uniform(0.5, 3, 600)
    return 1.5 * std * rng.normal(size=600), Normal(np.zeros(600), std)


def test_groups_are_those_counted_by_hand(narrow):
    y, forecast = narrow
    table = SpreadDisplay.from_predictions(y, forecast, n_bins=3, n_resamples=99).tables["spread"]
    groups = np.array_split(np.argsort(forecast.std), 3)
    np.testing.assert_allclose(table["observed"], [np.sqrt((y[g] ** 2).mean()) for g in groups])
    np.testing.assert_allclose(table["predicted"], [np.sqrt((forecast.std[g] ** 2).mean()) for g in groups])


def test_the_band_is_that_of_chi_square(narrow):
    """Of a normal forecast, n RMSE^2 / RMV^2 is nearly chi-square with n degrees, for spreads that hardly differ in a bin."""
    from scipy.stats import chi2

    _, forecast = narrow
    table = SpreadDisplay.from_predictions(np.zeros(600), forecast, n_bins=20, n_resamples=1999).tables["spread"]
    for end, tail in (("low", 0.025), ("high", 0.975)):
        expected = table["predicted"] * np.sqrt(chi2.ppf(tail, 30) / 30)
        np.testing.assert_allclose(table[end], expected, rtol=0.06)


def test_groups_beyond_chance_are_diamonds(narrow):
    display = spread(*narrow, n_resamples=199)
    table = display.tables["spread"]
    outside = (table["observed"] < table["low"]) | (table["observed"] > table["high"])
    np.testing.assert_array_equal(display.ax_.collections[-1].get_offsets()[:, 0], table["predicted"][outside])
    assert outside.all()


def test_ensembles_have_no_band(rng):
    members = rng.normal(size=(100, 10))
    display = spread(rng.normal(size=100), Ensemble(members))
    assert "low" not in display.tables["spread"]
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["a group of rows"]


@pytest.mark.parametrize("n", [1, 3])
def test_equal_spreads_are_one_group(n):
    display = spread([0.3] * n, Normal([0.0] * n, 1.0))
    assert display.tables["spread"].n_rows == 1
    assert "nan" not in display.to_svg()
