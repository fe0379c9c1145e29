import numpy as np
import pytest

from calibrant import Bernoulli, Ensemble, Mixture, MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.distributions import coordinate, dimensions


def test_numbers_have_no_coordinates(rng):
    assert dimensions(Normal.example(rng, 3)) == 0
    assert dimensions(Ensemble(rng.normal(size=(2, 3, 4)))) == 4
    assert dimensions(MultivariateNormal.example(rng, 1)) == 3


@pytest.mark.parametrize("family", [MultivariateNormal, Ensemble, Mixture])
def test_one_coordinate_is_distributed_as_that_of_the_draws(family, rng):
    vectors = {
        MultivariateNormal: MultivariateNormal.example(rng, 4),
        Ensemble: Ensemble(rng.normal(size=(4, 6, 3))),
        Mixture: Mixture([MultivariateNormal.example(rng, 4) for _ in range(2)], rng.dirichlet([1, 1], 4)),
    }[family]
    draws = vectors.sample(rng, 40_000)
    for k in range(3):
        one = coordinate(vectors, k)
        for y in draws[:3, :, k]:
            seen = (draws[:, :, k] <= y).mean(axis=0)
            assert np.all(np.abs(one.cdf(y) - seen) < 5 * np.sqrt(0.25 / 40_000) + 1e-4)


def test_other_families_do_not_say():
    with pytest.raises(InputError, match="Bernoulli does not say what it predicts of coordinate 1 alone"):
        coordinate(Bernoulli([[0.2, 0.5]]), 1)
