import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.recalibration import PartitionWise
from calibrant.recalibration.nonparametric.partition_wise import PartitionMap


def test_values_are_frequencies_of_the_rows_around_each_centre(rng):
    p, y, w = rng.dirichlet(np.ones(3), 300), rng.integers(0, 3, 300), rng.uniform(0.5, 2, 300)
    found = PartitionWise(6, prior=0.0).fit(y, p, sample_weight=w, folds=0).map
    cell = np.linalg.norm(p[:, None] - found.centres[None, :], axis=2).argmin(axis=1)
    for i in range(6):
        inside = cell == i
        exact = [w[inside & (y == c)].sum() / w[inside].sum() for c in range(3)]
        assert found.values[i] == pytest.approx(exact, rel=1e-12)
        assert found.centres[i] == pytest.approx(np.average(p[inside], axis=0, weights=w[inside]), rel=1e-9)
    assert found(p) == pytest.approx(found.values[cell], rel=1e-12)


def test_a_prior_counts_every_class_in_every_cell(rng):
    p, y = rng.random(60), rng.integers(0, 2, 60)
    bare, mixed = (PartitionWise(4, prior=c).fit(y, p, folds=0).map for c in (0.0, 2.0))
    cell = np.abs(p[:, None] - bare.centres[None, :, 1]).argmin(axis=1)
    rows = np.bincount(cell)
    assert mixed.values[:, 1] == pytest.approx((bare.values[:, 1] * rows + 2) / (rows + 4), rel=1e-12)


def test_cells_do_not_depend_on_the_order_of_rows(rng):
    p, y = rng.dirichlet(np.ones(3), 200), rng.integers(0, 3, 200)
    order = rng.permutation(200)
    maps = [PartitionWise(10).fit(y[o], p[o], folds=0).map for o in (np.arange(200), order)]
    assert maps[0](p) == pytest.approx(maps[1](p), rel=1e-9)


def test_fewer_rows_than_cells():
    found = PartitionWise(10, prior=0.0).fit([0, 1, 1], [0.2, 0.6, 0.9], folds=0).map
    assert found(np.array([0.2, 0.6, 0.9])).tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"n_cells": 0}, "n_cells must be"), ({"prior": -1}, "prior must be a number of at least 0; got -1")],
)
def test_settings(settings, message):
    with pytest.raises(InputError, match=message):
        PartitionWise(**settings)


def test_maps_of_other_shapes_are_refused():
    half = np.full((3, 2), 0.5)
    with pytest.raises(InputError, match=r"values must be probabilities, \(cells, 2\)"):
        PartitionMap(2, half, 3 * half)
    with pytest.raises(InputError, match="3 centres need as many rows of values; got 2"):
        PartitionMap(2, half, half[:2])
