import numpy as np
import pytest

from calibrant.estimators.smooth.fitted_curves import GridPositions, grids_of


def test_rows_are_shared_out_linearly(rng):
    scores, weights, observed = np.append(rng.random(50), [0.0, 1.0]), rng.random(52), rng.random(52) < 0.5
    grid = GridPositions.of(scores, weights, 8).grid(observed)
    hats = np.maximum(1 - np.abs(8 * scores[:, None] - np.arange(9)), 0)
    assert grid.weight == pytest.approx(weights @ hats, abs=1e-13)
    assert grid.event == pytest.approx((weights * observed) @ hats, abs=1e-13)


def test_grids_are_kept(rng):
    places = grids_of(rng.random(20), np.ones(20))
    assert places(512) is places(512)
