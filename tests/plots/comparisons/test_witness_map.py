import numpy as np
import pytest

from calibrant import Bernoulli, Ensemble, Normal
from calibrant._validate import InputError
from calibrant.plots import WitnessDisplay, witness
from calibrant.plots.comparisons.witness_plot import COLUMNS, WIDTH, log_odds_of, ranks_of


def test_gaps_are_kernel_means_of_residuals(rng):
    """The fine groups are a twelfth of the kernel wide: brute force over rows differs little."""
    p = rng.dirichlet(np.full(3, 0.4), 4000)
    y = (p.cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1)
    cells = WitnessDisplay.from_predictions(y, p, n_resamples=39).tables["cells"]
    places = (np.arange(COLUMNS) + 0.5) / COLUMNS
    favoured, position = p.argmax(axis=1), log_odds_of(p.max(axis=1))
    kernel = np.exp(-((places[:, None] - position) ** 2) / (2 * WIDTH**2))
    for j in range(3):
        near = kernel * (favoured == j)
        expected = near @ (p[:, j] - (y == j)) / near.sum(axis=1)
        gap = cells["gap"].reshape(3, -1)[j]
        assert np.isnan(gap).sum() == (near.sum(axis=1) < 3).sum()
        np.testing.assert_allclose(gap[~np.isnan(gap)], expected[~np.isnan(gap)], atol=0.003)


def test_gaps_of_forecasts_are_kernel_means_too(rng):
    spread = rng.uniform(0.5, 3, 4000)
    y = 1.5 * spread * rng.normal(size=4000)
    cells = WitnessDisplay.from_predictions(y, Normal(np.zeros(4000), spread), n_resamples=39).tables["cells"]
    places = (np.arange(COLUMNS) + 0.5) / COLUMNS
    kernel = np.exp(-((places[:, None] - ranks_of(spread)) ** 2) / (2 * WIDTH**2))
    expected = kernel @ (0.0013499 - (y / spread > 3)) / kernel.sum(axis=1)
    np.testing.assert_allclose(cells["gap"][cells["outcome"] == "above 3"], expected, atol=0.003)


def test_too_narrow_forecasts_show_where(rng):
    spread = rng.uniform(0.5, 3, 3000)
    y = spread * rng.normal(size=3000) * np.where(spread < 1.2, 2.0, 1.0)
    display = witness(y, Normal(np.zeros(3000), spread), n_resamples=199)
    cells = display.tables["cells"]
    far = np.isin(cells["outcome"], ["above 3", "below −3"])
    marked = cells["adjusted"] <= 0.05
    assert (cells["gap"][far & (cells["along"] < 1)] < -0.02).all()
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


@pytest.mark.parametrize("forecast", [Ensemble([[1.0, 2.0]]), Bernoulli([[0.2, 0.3]])])
def test_other_predictions_are_refused(forecast):
    y = [[0, 1]] if isinstance(forecast, Bernoulli) else [1.0]
    with pytest.raises(InputError, match="the map shows classes, or forecasts of one number"):
        witness(y, forecast)


def test_confident_models_are_seen_whichever_class_they_favour(rng):
    p = rng.dirichlet(np.full(3, 0.3), 1500)
    q = 0.7 * p + 0.1
    y = (q.cumsum(axis=1) < rng.random((1500, 1))).sum(axis=1)
    cells = WitnessDisplay.from_predictions(y, p, n_resamples=99).tables["cells"]
    for name in "012":
        marked = (cells["outcome"] == name) & (cells["adjusted"] <= 0.05)
        assert marked.sum() >= 3
        assert (cells["gap"][marked] > 0.1).all()


def test_whole_weights_count_as_copies(rng):
    p, y = rng.dirichlet(np.ones(3), 200), rng.integers(0, 3, 200)
    times = np.arange(200) % 3 + 1
    one = WitnessDisplay.from_predictions(y, p, sample_weight=times, n_resamples=39).tables["cells"]
    other = WitnessDisplay.from_predictions(np.repeat(y, times), np.repeat(p, times, axis=0), n_resamples=39)
    both = np.isfinite(one["gap"]) & np.isfinite(other.tables["cells"]["gap"])
    assert both.mean() > 0.5
    np.testing.assert_allclose(one["gap"][both], other.tables["cells"]["gap"][both], atol=0.01)
