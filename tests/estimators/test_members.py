import numpy as np
import pytest

from calibrant import Ensemble, MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.estimators.members import check_fair, distance_from, mean_distance, members_of


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


def test_members_or_draws(rng):
    batch = Ensemble(rng.normal(size=(3, 4)).astype(np.float32))
    assert np.array_equal(members_of(batch, 7, 0), batch.members)
    assert members_of(Normal.example(rng, 3), 7, 0).shape == (3, 7)
    vectors = MultivariateNormal.example(rng, 3)
    assert members_of(vectors, 7, 0).shape == (3, 7, 3)
    assert np.array_equal(members_of(vectors, 7, 0), members_of(vectors, 7, 0))


def test_fair_needs_an_ensemble_of_two():
    with pytest.raises(InputError, match="corrects for the number of members of an Ensemble; got Normal predictions"):
        check_fair(Normal([0.0], 1.0))
    with pytest.raises(InputError, match="needs at least 2 members a row; got 1"):
        check_fair(Ensemble([[0.0]]))
