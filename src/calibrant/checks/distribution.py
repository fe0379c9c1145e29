"""Families of distributions agree with their own draws."""

import numpy as np

from calibrant._array import to_numpy
from calibrant.checks.density import EDGES, check_density, frequency_error
from calibrant.checks.integrals import DIGITS, log_prob, mean
from calibrant.checks.moments import check_moments
from calibrant.distributions.base import Distribution

DRAWS = 40_000
"""Draws of a family that is checked."""


def check_distribution(family: type[Distribution], rng: np.random.Generator, *, n: int = 6) -> None:
    """Rows, targets, draws; densities, levels, moments, scores, waves and tempering against draws and each other.

    >>> from calibrant import Normal
    >>> check_distribution(Normal, np.random.default_rng(0))
    """
    batch = family.example(rng, n)
    assert len(batch) == n, "len() is not the number of rows"
    draws = batch.sample(rng, DRAWS)
    assert draws.shape[:2] == (DRAWS, n), f"sample gives {draws.shape}"
    assert np.array_equal(to_numpy(batch.as_targets(draws[0])), draws[0]), "a draw is no valid target"
    points = batch.point(batch.as_targets(draws[0]))
    assert points is NotImplemented or len(points) == n, "point() gives the wrong number of rows"
    _check_rows(batch, draws, rng)
    _check_real(batch, draws)
    check_density(batch, draws)
    check_moments(batch, draws)
    _check_waves(batch, draws)
    _check_tempering(batch, draws)


def _check_rows(batch: Distribution, draws: np.ndarray, rng: np.random.Generator) -> None:
    """Rows taken by a slice or by number are those predictions."""
    everything = _facts(batch, draws[0])
    for rows in (slice(1, len(batch)), np.array([len(batch) - 1, 0])):
        part, same = batch[rows], draws[:, rows]
        again = part.sample(rng, len(draws))
        assert again.shape == same.shape, "rows that are taken have the wrong shape"
        error = 5 * np.sqrt((again.var(axis=0) + same.var(axis=0)) / len(draws)) + 1e-12
        is_same = np.all(np.abs(again.mean(axis=0) - same.mean(axis=0)) < error)
        facts = _facts(part, draws[0][rows])
        is_same &= all(np.allclose(a, b[rows], rtol=1e-12, atol=1e-12) for a, b in zip(facts, everything, strict=True))
        assert is_same, "rows that are taken are other predictions"


def _facts(batch: Distribution, y: np.ndarray) -> list[np.ndarray]:
    """What the family says of its rows, rows first."""
    scalar = [batch.cdf(y), batch.below(y), batch.crps(y), batch.quantile(EDGES)] if y.ndim == 1 else []
    facts = [log_prob(batch, y), batch.coords, batch.mean, batch.std, *scalar]
    return [to_numpy(fact) for fact in facts if fact is not NotImplemented]


def _check_real(batch: Distribution, draws: np.ndarray) -> None:
    """Distribution function and quantiles of one-dimensional targets."""
    if draws.ndim > 2:
        return
    edges = np.quantile(draws, EDGES, axis=0)
    cdf, quantiles = batch.cdf(edges), batch.quantile(EDGES)
    if cdf is not NotImplemented:
        seen = (draws <= edges[:, None]).mean(axis=1)
        assert np.all(np.abs(cdf - seen) < frequency_error(cdf, draws)), "cdf does not agree with the draws"
    if quantiles is not NotImplemented:
        error = frequency_error(EDGES, draws)
        below, strictly = ((op(draws[:, :, None], quantiles)).mean(axis=0) for op in (np.less_equal, np.less))
        assert np.all((strictly - error < EDGES) & (below + error > EDGES)), "quantile does not agree with the draws"
    if cdf is not NotImplemented and quantiles is not NotImplemented:
        # whatever the family: F(Q(u)) >= u and Q(F(y)) <= y
        back = np.stack([batch[i : i + 1].quantile(cdf[:, i])[0] for i in range(len(batch))], axis=1)
        assert np.all(batch.cdf(quantiles.T).T > EDGES - 1e-9), "quantile does not reach its level"
        assert np.all(back < edges + 1e-9 * np.ptp(draws, axis=0)), "quantile lies beyond its level"


def _check_waves(batch: Distribution, draws: np.ndarray) -> None:
    frequencies = np.array([0.3, 1.0])
    w = frequencies if draws.ndim == 2 else frequencies[:, None] * np.linspace(0.5, 1, draws.shape[2])
    waves = batch.cf(w)
    if waves is NotImplemented:
        return
    found = np.stack([to_numpy(part) for part in waves])
    phase = draws[..., None] * w if draws.ndim == 2 else draws @ w.T
    seen = np.stack([np.cos(phase).mean(axis=0), np.sin(phase).mean(axis=0)])
    assert np.abs(found - seen).max() < 5 / np.sqrt(len(draws)), "cf does not agree with the draws"
    if draws.ndim == 2 and draws.dtype.kind == "f" and log_prob(batch, draws[0]) is not NotImplemented:

        def both(y: np.ndarray) -> np.ndarray:
            return np.stack([[np.cos(f * y), np.sin(f * y)] for f in frequencies])

        exact = np.transpose(mean(batch, draws, both), (1, 2, 0))
        assert np.abs(found - exact).max() < DIGITS, "cf is not the integral of log_prob"


def _check_tempering(batch: Distribution, draws: np.ndarray) -> None:
    for temperature in (0.5, 3.0):
        tempered = batch.temper(temperature)
        if tempered is NotImplemented:
            return
        reference = batch.log_reference(draws[:9])
        constant = tempered.log_prob(draws[:9]) - reference - (batch.log_prob(draws[:9]) - reference) / temperature
        assert np.ptp(constant, axis=0).max() < 1e-9, "temper(T) is not proportional to p^(1/T)"
