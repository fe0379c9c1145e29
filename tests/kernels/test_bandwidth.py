import numpy as np
import pytest

from calibrant.kernels import Cityblock, Euclidean
from calibrant.kernels.metrics import MAX_ROWS, _smallest, by_value, from_lowest, median_distance, thinned


def test_median_over_pairs_of_different_rows(rng):
    x = rng.normal(size=(30, 2))
    pairs = [np.linalg.norm(x[i] - x[j]) for i in range(30) for j in range(i)]
    assert median_distance(x, Euclidean()) == pytest.approx(np.median(pairs), rel=1e-13)
    pairs = [np.abs(x[i] - x[j]).sum() for i in range(30) for j in range(i)]
    assert median_distance(x, Cityblock()) == pytest.approx(np.median(pairs), rel=1e-13)


def test_many_ties():
    assert median_distance(np.array([[0.0]] * 9 + [[2.0]]), Euclidean()) == 2.0
    assert median_distance(np.zeros((5, 1)), Euclidean()) == 1.0
    assert median_distance(np.zeros((1, 1)), Euclidean()) == 1.0


def test_large_samples_are_thinned_the_same_way_each_time(rng):
    x = rng.normal(size=(3 * MAX_ROWS, 1))
    first = median_distance(x, Euclidean())
    assert first == median_distance(x, Euclidean())
    assert first == pytest.approx(2 * 0.4769, rel=0.05)  # median |N(0, 2)|


@pytest.mark.parametrize("round_to", [12, 1])
def test_the_order_of_rows_does_not_matter(rng, round_to):
    """Also with many equal rows."""
    x = rng.normal(size=(3 * MAX_ROWS, 2)).round(round_to)
    order = rng.permutation(len(x))
    assert median_distance(x[order], Euclidean()) == median_distance(x, Euclidean())
    assert np.array_equal(x[order][thinned(x[order])], x[thinned(x)])


def test_equal_rows_are_thinned_like_others(rng):
    x = np.where(rng.random(3 * MAX_ROWS) < 0.6, 1.0, rng.random(3 * MAX_ROWS))[:, None]
    share = (x[thinned(x)] == 1).mean()
    assert abs(share - (x == 1).mean()) < 5 * 0.5 / MAX_ROWS**0.5


def test_every_value_is_as_likely_to_stay(rng):
    """Thinning by digits leaves the distribution as it is (Kolmogorov-Smirnov, 99.9 %)."""
    x = rng.random((10 * MAX_ROWS, 1))
    kept = np.sort(x[thinned(x)][:, 0])
    assert np.abs(kept - (np.arange(MAX_ROWS) + 0.5) / MAX_ROWS).max() < 1.95 / MAX_ROWS**0.5


def test_single_precision_keeps_nearly_the_same_rows(rng):
    x = rng.random((3 * MAX_ROWS, 3))
    rows = set(thinned(x)) & set(thinned(x.astype(np.float32)))
    assert len(rows) > 0.97 * MAX_ROWS


@pytest.mark.parametrize("round_to", [12, 2, 0])
def test_tensors_keep_the_same_rows(rng, round_to):
    torch = pytest.importorskip("torch")
    x = rng.normal(size=(3 * MAX_ROWS, 2)).round(round_to)
    assert thinned(torch.from_numpy(x)).tolist() == thinned(x).tolist()


def test_many_coordinates_go_by_products(rng):
    x = rng.normal(size=(50, 40))
    x[7] = x[3]
    pairs = [np.linalg.norm(x[i] - x[j]) for i in range(50) for j in range(i)]
    assert median_distance(x, Euclidean()) == pytest.approx(np.median(pairs), rel=1e-13)
    x[:] = x[0]
    assert median_distance(x, Euclidean()) == 1.0


def test_keys_far_from_even_are_sorted_whole():
    keys = np.arange(10_000) + 2**62
    assert _smallest(keys, 2000) == 2**62 + 1999
    assert _smallest(keys[:5], 2000) == 2**62 + 4


def test_rows_seen_from_the_lowest_are_the_same_wherever_they_lie(rng):
    x = np.round(rng.normal(size=(3 * MAX_ROWS, 3)) * 2**16) / 2**16
    x[::7, 2] = -np.inf
    seen = from_lowest(x)
    assert np.min(seen[np.isfinite(seen)]) == 0
    for offset in (1.0, 1e3, 1e6, 2.0**30):
        assert np.array_equal(from_lowest(x + offset), seen)
    assert np.array_equal(from_lowest(np.full((4, 1), np.inf)), np.full((4, 1), np.inf))


@pytest.mark.parametrize("n", [50, 3 * MAX_ROWS])
def test_rows_by_value(rng, n):
    x = np.stack([np.ones(n), 5 * rng.normal(size=n), rng.normal(size=n).round(1)], axis=1)
    rows = by_value(x)
    assert len(rows) == min(n, MAX_ROWS)
    assert np.all(np.diff(x[rows, 1]) > 0)
    assert np.abs(
        np.searchsorted(np.sort(x[:, 1]), x[rows, 1]) / n - (np.arange(len(rows)) + 0.5) / len(rows)
    ).max() < 1 / len(rows)
    torch = pytest.importorskip("torch")
    assert by_value(torch.from_numpy(x)).tolist() == rows.tolist()
    assert np.array_equal(from_lowest(torch.from_numpy(x)).numpy(), from_lowest(x))


def test_rows_that_agree_are_in_an_order_of_their_own(rng):
    x = np.stack([10.0 * rng.integers(0, 3, 3 * MAX_ROWS), rng.random(3 * MAX_ROWS)], axis=1)
    order = rng.permutation(len(x))
    kept = x[by_value(x)]
    assert np.array_equal(x[order][by_value(x[order])], kept)
    assert np.abs(np.sort(kept[:, 1]) - (np.arange(MAX_ROWS) + 0.5) / MAX_ROWS).max() < 1.95 / MAX_ROWS**0.5
    assert sorted(by_value(np.ones((4, 2)))) == [0, 1, 2, 3]


def test_single_precision_keeps_neighbours(rng):
    x = rng.normal(size=(3 * MAX_ROWS, 3))
    kept, single = x[by_value(x)], x[by_value(x.astype(np.float32))]
    assert np.abs(kept - single).max(axis=0).min() < 1e-6
