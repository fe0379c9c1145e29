import numpy as np
import pytest

from calibrant._numerics.k_means import k_means, nearest


def test_centres_are_means_of_what_is_nearest_to_them(rng):
    points, mass = rng.normal(size=(200, 3)), rng.uniform(0.5, 2, 200)
    centres = k_means(points, mass, 7, np.random.default_rng(1))
    cell = np.linalg.norm(points[:, None] - centres[None, :], axis=2).argmin(axis=1)
    assert cell.tolist() == nearest(points, centres).tolist()
    for i in range(7):
        assert centres[i] == pytest.approx(np.average(points[cell == i], axis=0, weights=mass[cell == i]), rel=1e-12)


def test_no_more_centres_than_points():
    points = np.array([[0.0], [1.0], [1.0]])
    assert sorted(k_means(points, np.ones(3), 5, np.random.default_rng(0)).ravel().tolist()) == [0, 1]


def test_it_ends_where_centres_have_not_come_to_rest(rng, monkeypatch):
    points = rng.random((300, 2))
    rested = k_means(points, np.ones(300), 5, np.random.default_rng(1))
    monkeypatch.setattr("calibrant._numerics.k_means.ROUNDS", 1)
    found = k_means(points, np.ones(300), 5, np.random.default_rng(1))
    assert found.shape == rested.shape == (5, 2)
    assert not np.array_equal(found, rested)
    assert len(np.unique(nearest(points, found))) == 5
