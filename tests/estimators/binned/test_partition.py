import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.estimators import Grid, KMeans, MedianVariance

RULES = [MedianVariance(8), KMeans(6)]


@pytest.fixture
def points(rng):
    return rng.dirichlet(np.ones(3), 200).round(2)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_order_does_not_matter(rule, points, rng):
    order = rng.permutation(200)
    assert np.array_equal(rule.cells(points[order]), rule.cells(points)[order])


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_whole_weights_are_repeated_rows(rule, points, rng):
    times = rng.integers(0, 4, 200)
    repeated = rule.cells(np.repeat(points, times, axis=0))
    assert np.array_equal(np.repeat(rule.cells(points, times.astype(float)), times), repeated)


@pytest.mark.parametrize("rule", [MedianVariance(1), KMeans(300)], ids=repr)
def test_no_more_cells_than_points(rule):
    points = np.array([[0.5, 0.5], [0.5, 0.5], [0.2, 0.8]])
    cells = rule.cells(points)
    assert cells[0] == cells[1] != cells[2]
    assert rule.cells(points[:2]).tolist() == [0, 0]


def test_halves_hold_enough_rows_and_cannot_be_halved_again(points):
    cells = MedianVariance(8).cells(points)
    assert np.bincount(cells).min() >= 8
    for cell in np.unique(cells):
        assert np.array_equal(MedianVariance(8).cells(points[cells == cell]), np.zeros(np.sum(cells == cell)))


def test_the_first_cut_is_at_the_median_of_the_widest_class(rng):
    points = np.stack([rng.random(41), rng.random(41) / 3], axis=1)
    cells = MedianVariance(20).cells(points)
    assert np.array_equal(cells == cells[points[:, 0].argmin()], points[:, 0] <= np.median(points[:, 0]))


def test_k_means_is_a_fixed_point_and_finds_clusters(rng):
    centres = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    which = rng.integers(0, 3, 300)
    points = np.clip(centres[which] + rng.normal(0, 0.02, (300, 3)), 0, 1)
    cells = KMeans(3).cells(points)
    assert len(np.unique(np.stack([which, cells]), axis=1).T) == 3
    means = np.stack([points[cells == c].mean(axis=0) for c in range(3)])
    assert np.array_equal(np.argmin(((points[:, None] - means) ** 2).sum(axis=2), axis=1), cells)


def test_seeds_and_bad_settings(points):
    assert not np.array_equal(KMeans(6, 0).cells(points), KMeans(6, 1).cells(points))
    with pytest.raises(InputError, match="n_cells must be a whole number of at least 1; got 0"):
        KMeans(0)
    with pytest.raises(InputError, match="seed must be a whole number of at least 0; got -1"):
        KMeans(2, -1)
    with pytest.raises(InputError, match="min_rows must be a whole number"):
        MedianVariance(0.5)


def test_a_grid_has_cells_of_equal_width(rng):
    p = rng.dirichlet(np.ones(3), 200)
    cells = Grid(5).cells(p)
    index = np.minimum((p * 5).astype(int), 4)
    same = (index[:, None] == index[None, :]).all(axis=2)
    assert np.array_equal(same, cells[:, None] == cells[None, :])
    assert set(cells) == set(range(cells.max() + 1))
    assert Grid(5).cells(np.array([[1.0, 0.0], [0.99, 0.01]])).tolist() == [0, 0]  # certainty is in the last bin
    with pytest.raises(InputError, match="bins must be a whole number"):
        Grid(0)
