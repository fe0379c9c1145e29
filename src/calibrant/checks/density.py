"""Densities and probabilities agree with draws, distribution functions and one in all."""

import numpy as np

from calibrant.checks.integrals import DIGITS, integral, log_prob
from calibrant.distributions.base import Distribution

EDGES = np.array([0.2, 0.5, 0.8])
"""Levels of the quantiles at which probabilities are compared."""


def frequency_error(probability: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Five standard errors of a frequency."""
    variance = np.maximum(probability * (1 - probability), 0)  # a wrong family may give more than one
    return 5 * np.sqrt(variance / len(draws)) + 1e-9


def check_density(batch: Distribution, draws: np.ndarray) -> None:
    """``log_prob`` against draws, by the kind of targets."""
    logs = log_prob(batch, draws[:4])
    if logs is NotImplemented:
        return
    alone = np.stack([batch.log_prob(y) for y in draws[:4]])
    assert np.allclose(logs, alone, rtol=1e-12, atol=1e-12), "log_prob of a stack of targets is not that of its members"
    if draws.dtype.kind in "iu":
        _check_masses(batch, draws)
    elif draws.ndim == 2:
        _check_integrals(batch, draws)
    else:
        _check_ratios(batch, draws)


def _check_masses(batch: Distribution, draws: np.ndarray) -> None:
    """How often each outcome is drawn."""
    for i in range(len(batch)):
        outcomes, counts = np.unique(draws[:, i], axis=0, return_counts=True)
        mass = np.exp(batch[i : i + 1].log_prob(outcomes[:, None]))[:, 0]
        rare = 10 / len(draws)  # an outcome that is seen a few times need not be expected
        off = np.abs(counts / len(draws) - mass) > frequency_error(mass, draws) + rare
        assert not np.any(off), "log_prob does not agree with the draws"
        assert mass.sum() < 1 + DIGITS, "log_prob gives more than one in all"


def _check_integrals(batch: Distribution, draws: np.ndarray) -> None:
    """The density on both sides of an edge: with the draws, with the distribution function, and one in all."""
    for edge in np.quantile(draws, EDGES, axis=0):
        below, above = (integral(batch, draws, np.ones_like, edge, side) for side in (-1, 1))
        assert np.abs(below + above - 1).max() < DIGITS, "log_prob does not integrate to one"
        seen = (draws <= edge).mean(axis=0)
        assert np.all(np.abs(below - seen) < frequency_error(seen, draws)), "log_prob does not agree with the draws"
        cdf = batch.cdf(edge)
        assert cdf is NotImplemented or np.abs(below - cdf).max() < DIGITS, "cdf is not the integral of log_prob"


def _check_ratios(batch: Distribution, draws: np.ndarray) -> None:
    """Vectors: ``E q(Y) / p(Y) = 1`` for normal densities q where draws are dense, on both sides of the densest."""
    for i in range(len(batch)):
        y, logs = draws[:, i], batch[i : i + 1].log_prob(draws[:, i : i + 1])[:, 0]
        offset = (y - y[logs.argmax()]) / y.std(axis=0)
        distance = (offset**2).sum(axis=1)
        for side in (-1, 1):
            near = y[(distance < np.quantile(distance, 0.25)) & (side * offset[:, 0] > 0)]
            ratio = np.exp(_normal_log_prob(y, near) - logs)
            error = 5 * ratio.std() / np.sqrt(len(y))
            assert abs(ratio.mean() - 1) < error, "log_prob does not agree with the draws"


def _normal_log_prob(y: np.ndarray, sample: np.ndarray) -> np.ndarray:
    """Log density at y of the normal distribution with the moments of a sample."""
    factor = np.linalg.cholesky(np.atleast_2d(np.cov(sample.T)))
    z = np.linalg.solve(factor, (y - sample.mean(axis=0)).T)
    return -0.5 * (z**2).sum(axis=0) - np.log(np.sqrt(2 * np.pi) * np.diagonal(factor)).sum()
