import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.estimators import Grid, KMeans, MedianVariance

RULES = [MedianVariance(8), KMeans(6), Grid(4), Grid("doane")]


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
    index = np.maximum(np.ceil(p * 5).astype(int) - 1, 0)
    same = (index[:, None] == index[None, :]).all(axis=2)
    assert np.array_equal(same, cells[:, None] == cells[None, :])
    assert set(cells) == set(range(cells.max() + 1))
    assert Grid(5).cells(np.array([[1.0, 0.0], [0.99, 0.01]])).tolist() == [0, 0]  # certainty is in the last bin
    with pytest.raises(InputError, match="bins must be a whole number of at least 1; got 0"):
        Grid(0)
    with pytest.raises(InputError, match="bins must be a whole number, or 'doane' to find one; got 'sturges'"):
        Grid("sturges")


def test_a_probability_on_an_edge_lies_below_it_as_a_decimal():
    p = np.array([[0.29, 0.71], [0.285, 0.705], [0.07, 0.93], [0.061, 0.921]])
    cells = Grid(100).cells(p)
    assert cells[0] == cells[1]
    assert cells[2] == cells[3]


@pytest.mark.parametrize("bins", [1, 2, 5])
def test_with_three_classes_the_cells_are_equal_triangles(bins, rng):
    """As many as the square of the bins, each with as many even points as another, within its own three edges."""
    p = rng.dirichlet(np.ones(3), 40_000)
    cells = Grid(bins).cells(p)
    count = np.bincount(cells)
    assert len(count) == bins**2
    assert np.all(np.abs(count - 40_000 / bins**2) < 5 * np.sqrt(40_000 / bins**2))
    for cell in range(bins**2):
        here = p[cells == cell] * bins
        up, down = np.ceil(here) - 1, np.ceil(here)
        assert np.ptp(up, axis=0).tolist() == [0, 0, 0]  # between two lines along each class
        assert bins - up[0].sum() in (1, 2)  # the lines form a triangle that points up, or down
        assert down[0].sum() - bins in (1, 2)


def test_doane_by_hand(rng):
    """One skewed column and one without skewness."""
    x = np.arange(50.0)
    p = np.stack([x, x**3], axis=1) / 50**3
    g = np.mean((p[:, 1] - p[:, 1].mean()) ** 3) / np.mean((p[:, 1] - p[:, 1].mean()) ** 2) ** 1.5
    more = np.log2(1 + g / np.sqrt(6 * 48 / (51 * 53)))
    assert Grid("doane").settled(p).bins == np.ceil(1 + np.log2(50) + more / 2)
    assert Grid("doane").settled(np.full((3, 2), 0.5)).bins == np.ceil(1 + np.log2(3))
    assert Grid(7).settled(p).bins == 7


@pytest.mark.parametrize("widest", range(4))
def test_the_widest_column_is_halved(widest, rng):
    points = rng.uniform(0, 0.1, (20, 4))
    points[:, widest] *= 5
    upper = points[:, widest] > np.sort(points[:, widest])[9]
    cells = MedianVariance(10).cells(points)
    assert len(set(zip(cells, upper, strict=True))) == len(set(cells)) == 2
