import itertools
import math
import time

import numpy as np
import pytest

from calibrant.inference.pit_bands import curve_band, curve_coverage, histogram_band, histogram_coverage


def test_curves_by_enumeration():
    """Five numbers in four cells: sum over all ways to fall."""
    low, high = np.array([0, 1, 3]), np.array([3, 4, 5])
    chance = 0.0
    for cells in itertools.product(range(6), repeat=4):
        if sum(cells) == 5 and np.all((np.cumsum(cells)[:3] >= low) & (np.cumsum(cells)[:3] <= high)):
            chance += math.factorial(5) / np.prod([math.factorial(c) for c in cells]) / 4**5
    assert curve_coverage(low, high, 5) == pytest.approx(chance, rel=1e-12)


def test_histograms_by_enumeration():
    for low, high in ((0, 3), (1, 2), (0, 5), (2, 2), (0, 1)):
        chance = 0.0
        for cells in itertools.product(range(low, high + 1), repeat=3):
            if sum(cells) == 5:
                chance += math.factorial(5) / np.prod([math.factorial(c) for c in cells]) / 3**5
        assert histogram_coverage(low, high, 5, 3) == pytest.approx(chance, abs=1e-12)


def test_no_bound_holds_always():
    for n in (1, 7, 100_000):
        assert curve_coverage(np.zeros(9, int), np.full(9, n), n) == pytest.approx(1, rel=1e-9)
        if n < 100:
            assert histogram_coverage(0, n, n, 10) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("n", [50, 500])
def test_curves_of_uniform_numbers_stay_inside_together(n):
    """4,000 data sets: what is computed is what happens, and it is 95 %."""
    n_points = min(n, 100)
    low, high = curve_band(n, n_points, 0.95)
    exact = curve_coverage(np.rint(low * n).astype(int), np.rint(high * n).astype(int), n)
    assert 0.95 <= exact < 0.955
    rng = np.random.default_rng(1)
    counts = rng.multinomial(n, np.full(n_points, 1 / n_points), 4_000).cumsum(axis=1)[:, :-1] / n
    inside = np.all((counts >= low - 1e-12) & (counts <= high + 1e-12), axis=1).mean()
    assert abs(inside - exact) < 4 * np.sqrt(0.95 * 0.05 / 4_000)


@pytest.mark.parametrize(("n", "n_bins"), [(50, 10), (500, 10), (500, 20)])
def test_histograms_of_uniform_numbers_stay_inside_together(n, n_bins):
    """4,000 data sets; whole numbers make the chance a little larger than 95 %, and no narrower band would do."""
    low, high = histogram_band(n, n_bins, 0.95)
    exact = histogram_coverage(low, high, n, n_bins)
    assert exact >= 0.95
    assert histogram_coverage(low, high - 1, n, n_bins) < 0.95
    assert low == 0 or histogram_coverage(low + 1, high, n, n_bins) < 0.95
    counts = np.random.default_rng(1).multinomial(n, np.full(n_bins, 1 / n_bins), 4_000)
    inside = np.all((counts >= low) & (counts <= high), axis=1).mean()
    assert abs(inside - exact) < 4 * np.sqrt(exact * (1 - exact) / 4_000)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 14_600, 300_000])
def test_any_number_of_rows(n):
    start = time.perf_counter()
    low, high = curve_band(n, min(max(n, 2), 100), 0.9)
    assert np.all((low <= high) & (low >= 0) & (high <= 1))
    assert np.all(np.diff(low) >= 0)
    least, most = histogram_band(n, 20, 0.9)
    assert 0 <= least <= n / 20 <= most <= n
    assert time.perf_counter() - start < 20  # a shared machine


def test_bands_that_are_kept_cannot_be_changed():
    low, _ = curve_band(20, 5, 0.9)
    with pytest.raises(ValueError, match="read-only"):
        low[0] = 1.0
