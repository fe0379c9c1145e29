import numpy as np
import pytest

from calibrant import Laplace, Normal, Quantiles
from calibrant.checks.distribution import integral, mean, quadrature


def test_quadrature_knows_kinks_and_tails():
    assert quadrature(lambda x: np.array([np.exp(-x), np.exp(-x * x)]), np.inf) == pytest.approx([1, np.pi**0.5 / 2])
    assert quadrature(lambda x: np.array([abs(x - 0.5)]), 1.0) == pytest.approx([0.25])


@pytest.mark.parametrize(
    ("batch", "variance"), [(Normal([1.0, -2.0], [2.0, 0.5]), [4, 0.25]), (Laplace([0.0], [3.0]), [18])]
)
def test_means_and_halves_of_known_families(batch, variance, rng):
    draws = batch.sample(rng, 1_000)
    assert mean(batch, draws, lambda y: (y - batch.loc) ** 2) == pytest.approx(variance, rel=1e-8)
    half = integral(batch, draws, np.ones_like, batch.loc, 1)
    assert half == pytest.approx(np.full(len(batch), 0.5), rel=1e-8)


def test_jumps_and_single_values_are_integrated_one_by_one(rng):
    """Half of the probability at 0, the rest flat: of all pieces only the narrow one would be missed between nodes."""
    batch = Quantiles([[0.0, 0.0, 1.0, 1.001]], [0.25, 0.5, 0.75, 0.9], tails=(0.0, 2.0))
    draws = batch.sample(rng, 1_000)
    assert mean(batch, draws, lambda y: y) == pytest.approx(batch.mean, rel=1e-9)
    zero = np.zeros(1)
    assert integral(batch, draws, np.ones_like, zero, -1) == pytest.approx([0.5], rel=1e-9)  # the edge is below
    assert integral(batch, draws, np.ones_like, zero, 1) == pytest.approx([0.5], rel=1e-9)
