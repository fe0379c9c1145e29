import numpy as np

from calibrant import Categorical
from calibrant.plots import heat_map
from calibrant.plots.heat_map import CellGaps


def test_sums_are_those_of_the_rows(rng):
    p, y = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50)
    cell, w = rng.integers(0, 4, 50), rng.random(50)
    gaps = CellGaps.of(cell, p, w)
    for c in range(4):
        rows = cell == c
        gap = (w[rows, None] * (p[rows] - np.eye(3)[y[rows]])).sum(axis=0)
        variance = (w[rows, None] ** 2 * p[rows] * (1 - p[rows])).sum(axis=0) + (w**2).mean()
        np.testing.assert_allclose(gaps.sums(y[None])[0, c], gap)
        np.testing.assert_allclose(gaps.standardised(gaps.sums(y[None]))[0, c], np.abs(gap) / np.sqrt(variance))


def test_of_many_cells_the_largest_is_that_of_all(rng):
    """With few rows; in the last set of targets all that was likely is seen."""
    p = 0.9 * np.eye(200)[rng.integers(0, 200, 30)] + 0.1 / 200
    cell, w = rng.integers(0, 12, 30), rng.random(30)
    drawn = np.concatenate([Categorical(p).sample(rng, 20), p.argmax(axis=1)[None]])
    for weights in (None, w):
        gaps = CellGaps.of(cell, p, weights)
        whole = gaps.standardised(gaps.sums(drawn)).reshape(len(drawn), -1).max(axis=1)
        np.testing.assert_array_equal(gaps.largest(drawn), whole)


def test_calibrated_models_are_marked_in_one_of_twenty_data_sets(rng):
    """400 data sets at 5 %, by the largest of twelve cells: a share within four standard errors."""
    p = rng.dirichlet(np.ones(3) / 2, 60)
    predictions = Categorical(p)
    gaps = CellGaps.of(p.argmax(axis=1), p, None)
    marked = [
        gaps.adjusted(y, predictions, None, 99, i, None).min() <= 0.05
        for i, y in enumerate(predictions.sample(rng, 400))
    ]
    assert abs(np.mean(marked) - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 400)


def test_how_many_are_made_at_a_time_changes_no_digit(rng, monkeypatch):
    p = rng.dirichlet(np.ones(3), 60)
    gaps, y = CellGaps.of(p.argmax(axis=1), p, None), rng.integers(0, 3, 60)
    pvalues = []
    for numbers in (1, 50, 10_000_000):
        monkeypatch.setattr(heat_map, "NUMBERS", numbers)
        pvalues.append(gaps.adjusted(y, Categorical(p), None, 99, 0, None).tolist())
    assert pvalues[0] == pvalues[1] == pvalues[2]
