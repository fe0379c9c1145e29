"""Laplace mixtures with the Laplacian kernel, in closed form against quadrature."""

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss

from calibrant import SKCE, Laplace, Mixture
from calibrant.kernels import Exponential, MixtureWasserstein, expectation
from calibrant.residuals import residuals

UNIT = 0.8
NODES, WEIGHTS = leggauss(24)


def rule(corners):
    """Nodes and weights of Gauss's rule on cells of one unit between corners, and 40 units beyond them."""
    low, high = min(corners) - 40, max(corners) + 40
    edges = np.unique(np.concatenate([np.arange(low, high), corners, [high]]))
    half = np.diff(edges) / 2
    return ((edges[:-1] + half)[:, None] + half[:, None] * NODES).ravel(), (half[:, None] * WEIGHTS).ravel()


def density(mixture, y):
    parts = [np.exp(part.log_prob(y)) for part in mixture.components]
    return sum(w * part for w, part in zip(mixture.weights[0], parts, strict=True))


def seen_from(mixture, y):
    """``E exp(-|Z - y| / l)`` of one mixture, by quadrature between the corners of density and kernel."""
    z, w = rule([*mixture.kinks[0], y])
    return w @ (density(mixture, z) * np.exp(-np.abs(z - y) / UNIT))


def met(p, q):
    """``E exp(-|Z - Z'| / l)``; what is seen of p has corners where p has them."""
    z, w = rule([*p.kinks[0], *q.kinks[0]])
    return sum(a * b * seen_from(p, y) for y, a, b in zip(z, w, density(q, z), strict=True) if a * b > 1e-18)


@pytest.fixture
def problem(rng):
    parts = [Laplace(rng.normal(size=3), rng.uniform(0.3, 1.2, 3)) for _ in range(2)]
    return rng.normal(size=3), Mixture(parts, rng.dirichlet(np.ones(2), 3))


def test_expectations_are_those_of_quadrature(problem):
    _, mixture = problem
    closed = expectation(Exponential(UNIT), mixture, mixture)
    for i, j in [(0, 0), (0, 1), (1, 2)]:
        assert closed[i, j] == pytest.approx(met(mixture[i : i + 1], mixture[j : j + 1]), abs=1e-10)


def test_the_error_is_that_of_quadrature(problem):
    """Terms of targets, too, and with the transport distance of mixtures on predictions, as in appendix D.3 of the paper."""
    y, mixture = problem
    pair = [mixture[i : i + 1] for i in range(2)]
    cross = [seen_from(pair[i], y[1 - i]) for i in range(2)]
    exact = np.exp(-abs(y[0] - y[1]) / UNIT) - sum(cross) + met(*pair)
    found = residuals(Exponential(UNIT), y[:2], mixture[:2])
    assert found.route.value == "closed"
    assert found.inner(found)[0, 1] == pytest.approx(exact, abs=1e-10)
    metric = MixtureWasserstein(2, power=1)
    points = metric.embed(mixture[:2])
    whole = SKCE(Exponential(1.0, metric), Exponential(UNIT))(y[:2], mixture[:2])
    assert float(whole) == pytest.approx(np.exp(-metric(points, points)[0, 1]) * exact, abs=1e-10)
