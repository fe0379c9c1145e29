import numpy as np
from scipy.optimize import LinearConstraint, minimize

from calibrant.plots.style import apart


def test_places_are_the_nearest_that_are_apart(rng):
    """The same as least squares under the constraint, by a general optimiser."""
    for _ in range(5):
        wanted = rng.random(6) ** 3
        found = apart(wanted, 0.1)
        order = np.argsort(wanted)
        assert (np.diff(found[order]) >= 0.1 - 1e-12).all()
        gaps = LinearConstraint(np.eye(6)[order[1:]] - np.eye(6)[order[:-1]], 0.1)
        best = minimize(
            _distance, found + 0.01 * rng.random(6), (wanted,), constraints=gaps, bounds=[(0.05, 0.95)] * 6, tol=1e-12
        )
        np.testing.assert_allclose(found, best.x, atol=1e-4)


def _distance(places, wanted):
    return ((places - wanted) ** 2).sum()


def test_places_far_apart_stay():
    np.testing.assert_allclose(apart(np.array([0.9, 0.1, 0.5]), 0.1), [0.9, 0.1, 0.5])
