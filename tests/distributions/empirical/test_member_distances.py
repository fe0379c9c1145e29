import numpy as np
import pytest

from calibrant.distributions.empirical.ensemble import distance_from, mean_distance


def pairs(members):
    difference = members[:, :, None] - members[:, None]
    size = np.abs(difference) if members.ndim == 2 else np.linalg.norm(difference, axis=-1)
    m = members.shape[1]
    return size.sum(axis=(1, 2)) / (m * (m - 1))


@pytest.mark.parametrize("shape", [(6, 2), (6, 9), (6, 2, 3), (6, 9, 3), (1, 5, 1)])
def test_distances_are_those_of_all_pairs(shape, rng):
    members = rng.normal(size=shape).round(1)
    assert mean_distance(members) == pytest.approx(pairs(members), rel=1e-12)
    y = rng.normal(size=(4, shape[0], *shape[2:]))
    difference = members - y[:, :, None]
    size = np.abs(difference) if len(shape) == 2 else np.linalg.norm(difference, axis=-1)
    assert distance_from(members, y) == pytest.approx(size.mean(axis=2), rel=1e-12)
    assert distance_from(members, y[0]) == pytest.approx(size[0].mean(axis=1), rel=1e-12)


def test_one_member_has_no_spread():
    assert mean_distance(np.ones((3, 1))).tolist() == [0, 0, 0]
    assert mean_distance(np.ones((3, 1, 2))).tolist() == [0, 0, 0]


@pytest.mark.parametrize("shape", [(6, 2), (6, 9), (6, 9, 3)])
def test_weights_count_pairs(shape, rng):
    members, weights = rng.normal(size=shape).round(1), rng.dirichlet(np.ones(shape[1]), shape[0])
    difference = members[:, :, None] - members[:, None]
    size = np.abs(difference) if members.ndim == 2 else np.linalg.norm(difference, axis=-1)
    exact = np.einsum("nij,ni,nj->n", size, weights, weights) / (1 - (weights**2).sum(axis=1))
    assert mean_distance(members, weights) == pytest.approx(exact, rel=1e-12)
    y = rng.normal(size=(4, shape[0], *shape[2:]))
    difference = members - y[:, :, None]
    size = np.abs(difference) if len(shape) == 2 else np.linalg.norm(difference, axis=-1)
    assert distance_from(members, y, weights) == pytest.approx((weights * size).sum(axis=2), rel=1e-12)


def test_all_weight_on_one_member():
    assert mean_distance(np.array([[1.0, 5.0]]), np.array([[1.0, 0.0]])).tolist() == [0.0]


def test_members_that_nearly_coincide_far_from_zero():
    """Distances are those of the differences, whatever the level."""
    members = 1e9 + np.array([[0.0, 1.0, 3.0]])
    assert mean_distance(members) == pytest.approx([2.0], rel=1e-12)
