import numpy as np
import pytest

from calibrant.reports.class_report.class_faults import ClaimCells, MeanGap, beyond


def test_leaning_by_hand():
    leaning = MeanGap.of(np.array([0.5, 0.5, 0.9, 0.9]), np.array([1, 0, 0, 1]), None)
    assert (leaning.predicted, leaning.observed, leaning.is_high) == (pytest.approx(0.7), 0.5, True)
    assert leaning.z == pytest.approx(0.2 / np.sqrt((0.25 + 0.25 + 0.09 + 0.09) / 16))
    weighted = MeanGap.of(np.array([0.5, 0.9]), np.array([1, 0]), np.array([3.0, 1.0]))
    assert (weighted.predicted, weighted.observed) == pytest.approx((0.6, 0.75))
    assert MeanGap.of(np.array([1.0, 1.0]), np.array([1, 0]), None).z == np.inf
    assert MeanGap.of(np.array([1.0, 1.0]), np.array([1, 1]), None).z == 0


def test_cells_are_leanings_of_their_rows(rng):
    p, y, w = rng.random(60), rng.integers(0, 2, 60), rng.random(60)
    cell = rng.integers(0, 3, 60)
    cells = ClaimCells.of(p, y, w, cell, 4)
    for i in range(3):
        alone = MeanGap.of(p[cell == i], y[cell == i], w[cell == i])
        assert (cells.predicted[i], cells.observed[i]) == pytest.approx((alone.predicted, alone.observed))
        variance = (w**2 * p * (1 - p))[cell == i].sum()
        more = np.sqrt(1 + np.mean(w**2) / variance)
        assert cells.z[i] == pytest.approx(alone.z / more)
        assert (cells.low[i], cells.high[i]) == (p[cell == i].min(), p[cell == i].max())
    assert (cells.weight[3], cells.z[3]) == (0, 0)


def test_one_surprise_among_claims_that_are_nearly_certain_does_not_stand_out():
    p, y = np.full(100, 1e-9), np.zeros(100)
    y[0] = 1
    assert abs(ClaimCells.of(p, y, None, np.zeros(100, dtype=int), 1).z[0]) < 1.01


def test_what_one_contrast_explains_is_taken_off(rng):
    """Against resamples: the rest is standard normal, and uncorrelated with what was taken off."""
    p = rng.random(200)
    of, given, w = np.where(p > 0.5, 1.0, -1.0), np.ones(200), np.ones(200)
    draws = [(rng.random(200) < p) * 1 for _ in range(2000)]
    rest = np.array([beyond(of, given, p, y, w) for y in draws])
    rate = np.array([(p - y).sum() for y in draws])
    assert rest.mean() == pytest.approx(0, abs=4 / np.sqrt(2000))
    assert rest.std() == pytest.approx(1, abs=0.07)
    assert abs(np.corrcoef(rest, rate)[0, 1]) < 4 / np.sqrt(2000)
    assert beyond(given, given, p, draws[0], w) == 0
