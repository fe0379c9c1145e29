import numpy as np
import pytest

from calibrant import Categorical, MultivariateNormal, Normal
from calibrant.checks.distribution import check_density, frequency_error


@pytest.mark.parametrize("family", [Categorical, Normal, MultivariateNormal])
def test_draws_of_another_model_are_noticed(family, rng):
    batch, other = family.example(rng, 5), family.example(rng, 5)
    check_density(batch, batch.sample(rng, 20_000))
    with pytest.raises(AssertionError, match="log_prob does not agree with the draws"):
        check_density(batch, other.sample(rng, 20_000))


def test_frequencies_are_held_to_five_standard_errors():
    assert frequency_error(np.array([0.5]), np.empty((100, 1))) == pytest.approx([0.25])
    assert frequency_error(np.array([1.5]), np.empty((100, 1))) == pytest.approx([0.0], abs=1e-8)
