import numpy as np
import pytest
from scipy.stats import norm

from calibrant import MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.plots import SharpnessDisplay, sharpness


def test_groups_hold_the_quantile_of_errors(rng):
    std = rng.uniform(0.5, 3, 400)
    y = std * rng.normal(size=400)
    groups = SharpnessDisplay.from_predictions(y, Normal(np.zeros(400), std), n_bins=4).tables["groups"]
    parts = np.array_split(np.argsort(std), 4)
    np.testing.assert_allclose(groups["width"], [norm.ppf(0.95) * std[part].mean() for part in parts])
    np.testing.assert_allclose(groups["error"], [np.sort(np.abs(y[part]))[89] for part in parts])


def test_intervals_of_quantiles_hold_the_truth(rng):
    """2,000 groups of 60 rows at 95 %: coverage is exact up to whole numbers, hence a little more."""
    hits = []
    for _ in range(100):
        y = rng.normal(size=1200)
        std = np.repeat(np.linspace(1, 1.001, 20), 60)
        groups = SharpnessDisplay.from_predictions(y, Normal(np.zeros(1200), std), n_bins=20).tables["groups"]
        hits += ((groups["low"] <= norm.ppf(0.95)) & (norm.ppf(0.95) <= groups["high"])).tolist()
    assert len(hits) == 2000
    assert 0.95 - 4 * np.sqrt(0.05 * 0.95 / 2000) < np.mean(hits) < 0.985


def test_rows_are_thinned_and_marks_follow_the_line(rng):
    n = 100_000
    display = sharpness(rng.normal(0, 2, n), Normal(np.zeros(n), rng.uniform(0.9, 1.1, n)))
    assert display.tables["rows"].n_rows == 500
    groups = display.tables["groups"]
    outside = (groups["width"] < groups["low"]) | (groups["width"] > groups["high"])
    assert outside.all()
    assert len(display.ax_.collections[-1].get_offsets()) == len(outside)
    assert len(display.to_svg()) < 150_000


@pytest.mark.parametrize("n", [1, 3])
def test_little_data_is_drawn(n):
    display = sharpness([0.3] * n, Normal([0.0] * n, 1.0))
    assert display.tables["groups"]["high"][0] == np.inf
    svg = display.to_svg()
    assert "nan" not in svg
    assert "inf" not in svg


def test_vectors_are_refused():
    with pytest.raises(InputError, match="these predictions are vectors: give one coordinate"):
        sharpness([[0.0, 1.0]], MultivariateNormal([[0.0, 0.0]], 1.0))
