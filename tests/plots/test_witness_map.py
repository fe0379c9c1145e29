import numpy as np
import pytest
from scipy.stats import norm

from calibrant import Bernoulli, Ensemble, Normal, Poisson
from calibrant._validate import InputError
from calibrant.plots import WitnessDisplay, witness
from calibrant.plots.witness_map import COLUMNS, ERRORS, WIDTH, Outcomes, log_odds_of, ranks_of


def test_values_are_kernel_means_of_residuals(rng):
    """The fine groups are a twelfth of the kernel wide: brute force over rows differs little."""
    p = rng.dirichlet(np.full(3, 0.4), 3000)
    y = rng.integers(0, 3, 3000)
    cells = WitnessDisplay.from_predictions(y, p, n_resamples=39).tables["cells"]
    position = log_odds_of(p.max(axis=1))
    places = (np.arange(COLUMNS) + 0.5) / COLUMNS
    kernel = np.exp(-((places[:, None] - position) ** 2) / (2 * WIDTH**2))
    expected = (kernel @ (np.eye(3)[y] - p)) / kernel.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(cells["value"].reshape(3, -1), expected.T, atol=0.004)


def test_errors_have_the_chances_of_their_forecast(rng):
    forecast = Normal(rng.normal(size=40), rng.uniform(0.5, 2, 40))
    y = rng.normal(size=40)
    outcomes = Outcomes.of(y, forecast)
    edges = np.array([-np.inf, *ERRORS, np.inf])
    np.testing.assert_allclose(outcomes.chances.matrix, np.tile(np.diff(norm.cdf(edges)), (40, 1)), atol=1e-12)
    z = (y - forecast.mean) / forecast.std
    np.testing.assert_array_equal(outcomes.targets, np.searchsorted(edges, z) - 1)


def test_counts_fall_where_their_chances_do(rng):
    """Targets drawn from the forecast hit each outcome as often as its chance says."""
    forecast = Poisson(rng.uniform(1, 6, 4000))
    outcomes = Outcomes.of(forecast.sample(rng, 1)[0], forecast)
    seen = np.bincount(outcomes.targets, minlength=len(outcomes.names)) / 4000
    chances = outcomes.chances.matrix.mean(axis=0)
    assert (np.abs(seen - chances) < 4 * np.sqrt(chances * (1 - chances) / 4000) + 1e-9).all()


def test_too_narrow_forecasts_show_where(rng):
    spread = rng.uniform(0.5, 3, 3000)
    y = spread * rng.normal(size=3000) * np.where(spread < 1.2, 2.0, 1.0)
    display = witness(y, Normal(np.zeros(3000), spread), n_resamples=199)
    cells = display.tables["cells"]
    far = np.isin(cells["outcome"], ["above 3", "below −3"])
    marked = cells["adjusted"] <= 0.05
    assert (cells["value"][far & (cells["along"] < 1)] > 0.02).all()
    assert marked[far & (cells["along"] < 1)].all()
    assert not marked[cells["along"] > 2].any()
    dots = display.ax_.collections[-1].get_offsets()
    assert len(dots) == marked.sum()
    assert display.ax_.get_xlabel() == "Predicted standard deviation"


def test_of_many_classes_the_largest_are_shown(rng):
    p = rng.dirichlet(np.full(20, 0.2), 500)
    tables = WitnessDisplay.from_predictions(p.argmax(axis=1), p, max_classes=4, n_resamples=39).tables
    assert len(set(tables["cells"]["outcome"].tolist())) == 4


@pytest.mark.parametrize(
    ("y", "forecast"),
    [
        ([0], [0.3]),
        ([0, 1, 1], [0.5, 0.5, 0.5]),
        ([0, 1], [0.0, 1.0]),
        ([0.3], Normal([0.0], 1.0)),
        ([0.3, 1.0, 2.0], Normal([0.0] * 3, 1.0)),
    ],
)
def test_little_data_is_drawn(y, forecast):
    assert "nan" not in witness(y, forecast, n_resamples=39).to_svg()


def test_equal_spreads_share_a_rank():
    np.testing.assert_allclose(ranks_of(np.array([2.0, 1.0, 2.0, 5.0])), [0.5, 0.125, 0.5, 0.875])


@pytest.mark.parametrize("forecast", [Ensemble([[1.0, 2.0]]), Bernoulli([[0.2, 0.3]])])
def test_other_predictions_are_refused(forecast):
    y = [[0, 1]] if isinstance(forecast, Bernoulli) else [1.0]
    with pytest.raises(InputError, match="the map shows classes, or forecasts of one number"):
        witness(y, forecast)
