import numpy as np
import pytest

from calibrant import Categorical, Ensemble, Laplace, Mixture, MultivariateNormal, Normal
from calibrant.distributions.cells import Cells, crps_by_cells, edges_of, has_levels, moments_by_cells


def by_pairs(members, y):
    far = np.abs(members - y[..., None]).mean(axis=-1)
    return far - np.abs(members[:, :, None] - members[:, None]).mean(axis=(1, 2)) / 2


@pytest.mark.parametrize(("family", "digits"), [(Normal, 1e-8), (Laplace, 1e-7), (Mixture, 1e-7)])
def test_smooth_families_come_out_to_seven_digits(family, digits, rng):
    batch = family.example(rng, 300)
    y = np.concatenate([batch.sample(rng, 3), batch.mean + batch.std * np.array([[-50.0], [0.0], [50.0]])])
    assert np.abs(crps_by_cells(batch, y) - batch.crps(y)).max() < digits * batch.std.max()
    mean, std = moments_by_cells(batch)
    assert mean == pytest.approx(batch.mean, abs=digits)
    assert std == pytest.approx(batch.std, rel=digits)


@pytest.mark.parametrize("members", [1, 2, 7, 400])
def test_members_are_exact_however_many(members, rng):
    batch = Ensemble(rng.normal(size=(20, members)).round(1))  # with ties
    y = np.stack([batch.sample(rng, 1)[0], rng.normal(size=20), np.full(20, -9.0), np.full(20, 9.0)])
    assert crps_by_cells(batch, y) == pytest.approx(by_pairs(batch.members, y), abs=1e-12)
    mean, std = moments_by_cells(batch)
    assert mean == pytest.approx(batch.mean, abs=1e-12)
    assert std == pytest.approx(batch.std, abs=1e-7)  # the root of a rounding error


def test_modes_that_lie_far_apart(rng):
    batch = Mixture([Normal(np.zeros(50), 1.0), Normal(np.full(50, 1e4), 0.1)], rng.dirichlet([1, 1], 50))
    y = batch.sample(rng, 3)
    assert crps_by_cells(batch, y) == pytest.approx(batch.crps(y), abs=1e-6)
    assert moments_by_cells(batch)[1] == pytest.approx(batch.std, abs=1e-6)


def test_rows_in_chunks_are_the_same_rows(rng, monkeypatch):
    batch = Laplace.example(rng, 40)
    y = batch.sample(rng, 2)
    whole, moments = crps_by_cells(batch, y), moments_by_cells(batch)
    monkeypatch.setattr("calibrant.distributions.cells.CHUNK", 255 * 3)
    assert np.array_equal(crps_by_cells(batch, y), whole)
    assert np.array_equal(moments_by_cells(batch), moments)


def test_edges_rise_and_are_found(rng):
    batch = Normal.example(rng, 9)
    cells = Cells.of(batch)
    assert np.all(np.diff(edges_of(batch), axis=1) > 0)
    y = np.stack([cells.edges[:, 0] - 1, cells.edges[:, 0], cells.edges[:, 100] + 1e-9, cells.edges[:, -1]])
    wanted = [np.sum(cells.edges <= line[:, None], axis=1) for line in y]
    assert np.array_equal(cells._edges_upto(y), wanted)


def test_families_without_levels():
    for batch in (Categorical([0.2, 0.4]), MultivariateNormal([[0.0, 1.0]], 1.0), Ensemble(np.zeros((2, 3, 2)))):
        assert not has_levels(batch)
        assert moments_by_cells(batch) is NotImplemented
        assert crps_by_cells(batch, np.zeros(len(batch))) is NotImplemented
