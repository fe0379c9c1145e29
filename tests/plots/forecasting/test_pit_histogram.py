import numpy as np
import pytest

from calibrant import Categorical, Ensemble, MultivariateNormal, Normal, Poisson
from calibrant._validate import InputError
from calibrant.plots import PITHistogramDisplay, pit_histogram


def test_bars_are_shares_of_levels(rng):
    y = rng.normal(0, 1.5, 400)
    display = pit_histogram(y, Normal(np.zeros(400), 1.0), n_bins=10)
    table = display.tables["pit_histogram"]
    from scipy.stats import norm

    np.testing.assert_allclose(table["observed"], np.histogram(norm.cdf(y), 10, (0, 1))[0] / 400)
    bars = sorted((bar.get_x(), bar.get_height()) for bar in display.ax_.patches)
    np.testing.assert_allclose([height for _, height in bars], 100 * table["observed"])
    beyond = (table["observed"] < table["low"]) | (table["observed"] > table["high"])
    assert len(display.ax_.collections[-1].get_offsets()) == beyond.sum() > 0


@pytest.mark.parametrize(
    ("y", "forecast"),
    [
        ([0.3], Normal([0.0], 1.0)),
        ([1, 4, 2], Poisson([1.0, 2.0, 3.0])),
        ([2.5, 0.0], Ensemble([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]])),
        ([[0.0, 1.0]] * 3, MultivariateNormal([[0.0, 0.0]] * 3, 1.0)),
    ],
)
def test_every_kind_of_forecast_is_drawn(y, forecast):
    display = pit_histogram(y, forecast)
    assert display.tables["pit_histogram"]["observed"].sum() == pytest.approx(1)
    assert "nan" not in display.to_svg()


def test_the_legend_says_the_level(rng):
    display = pit_histogram(rng.normal(size=50), Normal(np.zeros(50), 1.0), level=0.99)
    assert display.ax_.get_legend().get_texts()[-1].get_text() == "99 % band if calibrated"


def test_classes_have_no_levels():
    with pytest.raises(InputError, match="PITHistogram needs a distribution function"):
        PITHistogramDisplay.from_predictions([0, 1], Categorical([0.2, 0.4]))


def test_weights_count(rng):
    y, weights = rng.normal(size=100), rng.random(100)
    table = pit_histogram(y, Normal(np.zeros(100), 1.0), sample_weight=weights, n_bins=2).tables["pit_histogram"]
    assert table["observed"][0] == pytest.approx(np.average(y <= 0, weights=weights))
