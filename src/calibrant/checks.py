"""Conformance checks, for our own suite and for anyone who adds a kernel, a family, an estimator.

Each function raises ``AssertionError`` with words where something does not hold. What draws can tell is held to five
standard errors; what can be integrated is held to digits.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.estimators.base import BaseEstimator, EachDraw
from calibrant.expectation import expectation
from calibrant.kernels import Kernel
from calibrant.kernels.base import as_points

DRAWS = 40_000
"""Draws of a family that is checked."""

Values: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""A function of targets, one a row of a batch; rows are the last axis of what it gives."""

LEVELS = np.array([0.2, 0.5, 0.8])

DIGITS = 1e-6
"""What integrals are held to; adaptive quadrature is asked for a thousand times less, as kinks may deceive it."""


def check_kernel(kernel: Kernel, points: np.ndarray, *, rtol: float = 1e-12) -> None:
    """Symmetric and positive semi-definite on these points; parts, diagonal, fast products and waves agree with the matrix.

    >>> from calibrant.kernels import Gaussian
    >>> check_kernel(Gaussian(1.0), np.linspace(0, 3, 12)[:, None])
    """
    kernel = kernel.resolve(points)
    matrix = to_numpy(kernel(points, points))
    assert matrix.shape == (len(points), len(points)), f"{kernel!r} gives shape {matrix.shape}"
    size = float(np.abs(matrix).max()) or 1.0
    assert np.allclose(matrix, matrix.T, rtol=rtol, atol=rtol * size), f"{kernel!r} is not symmetric"
    least = float(np.linalg.eigvalsh((matrix + matrix.T) / 2)[0])
    assert least > -1e-10 * size * len(points), f"{kernel!r} is not positive semi-definite: eigenvalue {least:.3g}"
    part = to_numpy(kernel(points[1:3], points))
    assert np.allclose(part, matrix[1:3], rtol=1e-6, atol=1e-6 * size), f"{kernel!r} of a few points differs"
    if points.shape[1] == 1:
        _check_product(kernel, np.sort(points[:, 0]), rtol)
        _check_spectrum(kernel, np.sort(points[:, 0]), size)
    _check_frequencies(kernel, points, matrix)
    diagonal = to_numpy(kernel.diagonal(points))
    assert np.allclose(diagonal, np.diagonal(matrix), rtol=rtol, atol=rtol * size), (
        f"the diagonal of {kernel!r} is wrong"
    )


def _check_frequencies(kernel: Kernel, points: np.ndarray, matrix: np.ndarray) -> None:
    waves = kernel.frequencies(np.random.default_rng(0), DRAWS // 10, points.shape[1])
    if waves is NotImplemented:
        return
    phase = points @ waves.T
    mean = (np.cos(phase) @ np.cos(phase).T + np.sin(phase) @ np.sin(phase).T) / len(waves)
    assert np.abs(mean - matrix).max() < 5 / np.sqrt(len(waves)), f"the random frequencies of {kernel!r} are wrong"


def _check_product(kernel: Kernel, x: np.ndarray, rtol: float) -> None:
    v = np.random.default_rng(0).normal(size=(len(x), 2))
    for diagonal, power in product((True, False), (1, 2)):
        fast = kernel.product(x, v, diagonal=diagonal, power=power)
        if fast is NotImplemented:
            return
        matrix = kernel(x[:, None], x[:, None]) ** power * (1 if diagonal else 1 - np.eye(len(x)))
        limit = 10 * rtol * np.abs(matrix).sum(axis=1).max()
        pairs = np.einsum("nq,nm,mq->q", v, np.triu(kernel(x[:, None], x[:, None]), 1), v)
        assert np.abs(kernel.pair_sums(x, v) - pairs).max() <= len(x) * limit, f"the pair sums of {kernel!r} are wrong"
        assert np.abs(fast - matrix @ v).max() <= limit, f"the fast product of {kernel!r} is wrong"


def _check_spectrum(kernel: Kernel, x: np.ndarray, size: float) -> None:
    spectrum = kernel.spectrum(float(x[-1] - x[0]))
    if spectrum is NotImplemented:
        return
    nodes, weights = spectrum
    assert weights.min() >= 0, f"the spectrum of {kernel!r} has negative weights"
    waves = np.cos((x[:, None] - x[None, :])[..., None] * nodes) @ weights
    assert np.abs(waves - kernel(x[:, None], x[:, None])).max() < 1e-13 * size, f"the spectrum of {kernel!r} is wrong"


def check_distribution(family: type[Distribution], rng: np.random.Generator, *, n: int = 6) -> None:
    """Rows, targets, draws; density, distribution function, quantiles, waves and tempering against draws and each other.

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
    _check_density(batch, draws)
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
    scalar = [batch.cdf(y), batch.quantile(LEVELS)] if y.ndim == 1 else []
    facts = [_log_prob(batch, y), batch.coords, *scalar]
    return [to_numpy(fact) for fact in facts if fact is not NotImplemented]


def _log_prob(batch: Distribution, y: np.ndarray) -> Any:
    try:
        return batch.log_prob(y)
    except InputError:
        return NotImplemented


def _check_real(batch: Distribution, draws: np.ndarray) -> None:
    """Distribution function and quantiles of one-dimensional targets."""
    if draws.ndim > 2:
        return
    edges = np.quantile(draws, LEVELS, axis=0)
    cdf, quantiles = batch.cdf(edges), batch.quantile(LEVELS)
    if cdf is not NotImplemented:
        seen = (draws <= edges[:, None]).mean(axis=1)
        assert np.all(np.abs(cdf - seen) < _error(cdf, draws)), "cdf does not agree with the draws"
    if quantiles is not NotImplemented:
        error = _error(LEVELS, draws)
        below, strictly = ((op(draws[:, :, None], quantiles)).mean(axis=0) for op in (np.less_equal, np.less))
        assert np.all((strictly - error < LEVELS) & (below + error > LEVELS)), "quantile does not agree with the draws"
    if cdf is not NotImplemented and quantiles is not NotImplemented:
        # whatever the family: F(Q(u)) >= u and Q(F(y)) <= y
        back = np.stack([batch[i : i + 1].quantile(cdf[:, i])[0] for i in range(len(batch))], axis=1)
        assert np.all(batch.cdf(quantiles.T).T > LEVELS - 1e-9), "quantile does not reach its level"
        assert np.all(back < edges + 1e-9 * np.ptp(draws, axis=0)), "quantile lies beyond its level"


def _error(probability: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Five standard errors of a frequency."""
    variance = np.maximum(probability * (1 - probability), 0)  # a wrong family may give more than one
    return 5 * np.sqrt(variance / len(draws)) + 1e-9


def _check_density(batch: Distribution, draws: np.ndarray) -> None:
    logs = _log_prob(batch, draws[:4])
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
        off = np.abs(counts / len(draws) - mass) > _error(mass, draws) + rare
        assert not np.any(off), "log_prob does not agree with the draws"
        assert mass.sum() < 1 + DIGITS, "log_prob gives more than one in all"


def _check_integrals(batch: Distribution, draws: np.ndarray) -> None:
    """The density on both sides of an edge: with the draws, with the distribution function, and one in all."""
    for edge in np.quantile(draws, LEVELS, axis=0):
        below, above = (_integral(batch, draws, np.ones_like, edge, side) for side in (-1, 1))
        assert np.abs(below + above - 1).max() < DIGITS, "log_prob does not integrate to one"
        seen = (draws <= edge).mean(axis=0)
        assert np.all(np.abs(below - seen) < _error(seen, draws)), "log_prob does not agree with the draws"
        cdf = batch.cdf(edge)
        assert cdf is NotImplemented or np.abs(below - cdf).max() < DIGITS, "cdf is not the integral of log_prob"


def _integral(batch: Distribution, draws: np.ndarray, f: Values, edge: np.ndarray, side: int) -> np.ndarray:
    """``integral f(y) p(y) dy`` of each row on one side of its edge."""
    unit = np.quantile(draws, 0.75, axis=0) - np.quantile(draws, 0.25, axis=0)

    def integrand(t: float) -> np.ndarray:
        y = edge + side * t * unit
        return f(y) * np.exp(batch.log_prob(y)) * unit

    return _quadrature(integrand, np.inf)


def _quadrature(f: Callable[[float], np.ndarray], end: float) -> np.ndarray:
    from scipy.integrate import quad_vec

    points = [x for x in np.arange(0.25, 4, 0.25) if x < end]
    return quad_vec(f, 0, end, epsabs=DIGITS / 1000, epsrel=DIGITS / 1000, norm="max", points=points)[0]


def _mean(batch: Distribution, draws: np.ndarray, f: Values) -> np.ndarray:
    """``E f(Y)`` of each row by its density."""
    edge = np.quantile(draws, 0.3, axis=0)  # a median is where densities have their kinks
    return _integral(batch, draws, f, edge, -1) + _integral(batch, draws, f, edge, 1)


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
    if draws.ndim == 2 and _log_prob(batch, draws[0]) is not NotImplemented:

        def both(y: np.ndarray) -> np.ndarray:
            return np.stack([[np.cos(f * y), np.sin(f * y)] for f in frequencies])

        exact = np.transpose(_mean(batch, draws, both), (1, 2, 0))
        assert np.abs(found - exact).max() < DIGITS, "cf is not the integral of log_prob"


def _check_tempering(batch: Distribution, draws: np.ndarray) -> None:
    for temperature in (0.5, 3.0):
        tempered = batch.temper(temperature)
        if tempered is NotImplemented:
            return
        constant = tempered.log_prob(draws[:9]) - batch.log_prob(draws[:9]) / temperature
        assert np.ptp(constant, axis=0).max() < 1e-9, "temper(T) is not proportional to p^(1/T)"


def check_expectation(
    kernel: Kernel, p: Distribution, q: Distribution, rng: np.random.Generator, *, draws: int = 20_000
) -> None:
    """The closed form, with none, one or both of its arguments spread, against the kernel averaged in another way.

    One-dimensional families with a density or quantiles are integrated by adaptive quadrature, others by independent
    draws. Symmetric; ever narrower predictions tend to points.

    >>> from calibrant import Normal
    >>> from calibrant.kernels import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> check_expectation(Gaussian(1.0), Normal.example(rng, 2), Normal.example(rng, 3), rng)
    """
    x, y = (batch.as_targets(batch.sample(rng, 1)[0]) for batch in (p, q))
    at_x, at_y = p.point(x), q.point(y)
    matrix, found = kernel(as_points(x), as_points(y)), _closed(kernel, at_x, at_y)
    assert np.allclose(found, matrix, rtol=1e-12, atol=1e-13), f"{kernel!r}: of two points it is not the kernel"
    averages = [
        (at_x, q, lambda z: kernel(as_points(x), as_points(z))),
        (at_y, p, lambda z: kernel(as_points(y), as_points(z))),
        (p, q, lambda z: _closed(kernel, p, q.point(z))),
    ]
    for left, right, values in averages:
        found = _closed(kernel, left, right)
        wanted, error = _average(right, values, right.sample(rng, draws))
        off = np.abs(found - wanted) > error
        assert not np.any(off), f"{kernel!r}, {left!r}, {right!r}: {found[off][0]} should be {wanted[off][0]}"
    if to_numpy(x).dtype.kind == "f":
        _check_narrow(kernel, p, q, rng)
        _check_narrow(kernel, q, p, rng)


def _closed(kernel: Kernel, p: Distribution, q: Distribution) -> np.ndarray:
    """The closed form, found in both orders."""
    value, other = expectation(kernel, p, q), expectation(kernel, q, p)
    assert value is not NotImplemented, f"{kernel!r} has no closed form for {p!r} and {q!r}"
    assert value.shape == (len(p), len(q)), f"{kernel!r}, {p!r}, {q!r}: shape {value.shape}"
    found = to_numpy(value)
    same = np.allclose(found, to_numpy(other).T, rtol=1e-12, atol=1e-12 * np.abs(found).max())
    assert same, f"{kernel!r}, {p!r}, {q!r}: not symmetric"
    return found


def _average(batch: Distribution, values: Values, drawn: np.ndarray) -> tuple[np.ndarray, Any]:
    """Means over targets of the batch, and the error they may have."""
    if drawn.ndim == 2 and drawn.dtype.kind == "f":
        mean: Any = NotImplemented
        if _log_prob(batch, drawn[0]) is not NotImplemented:
            mean = _mean(batch, drawn, values)
        elif batch.quantile(LEVELS) is not NotImplemented:
            mean = _quadrature(lambda u: values(batch.quantile(np.array([u]))[:, 0]), 1.0)
        if mean is not NotImplemented:
            return mean, DIGITS * max(1.0, np.abs(mean).max())
    flat = values(drawn.reshape(-1, *drawn.shape[2:]))
    table = flat.reshape(len(flat), len(drawn), len(batch))
    rare = 10 * np.abs(table).max() / len(drawn)  # what happens too seldom to be drawn
    return table.mean(axis=1), 5 * table.std(axis=1) / np.sqrt(len(drawn)) + rare


def _check_narrow(kernel: Kernel, p: Distribution, q: Distribution, rng: np.random.Generator) -> None:
    """Cooled until no spread is left, what is expected lies among the values at draws."""
    for temperature in 10.0 ** -np.arange(2, 21, 3):
        narrow = p.temper(temperature)
        if narrow is NotImplemented:
            return
        value = _closed(kernel, narrow, q)
        drawn = narrow.sample(rng, 100)
        points = narrow.point(drawn.reshape(-1, *drawn.shape[2:]))
        ends = _closed(kernel, points, q).reshape(len(drawn), *value.shape)
        slack = 1e-11 * max(1.0, np.abs(value).max())
        inside = (value > ends.min(axis=0) - slack) & (value < ends.max(axis=0) + slack)
        assert np.all(inside), (
            f"{kernel!r}, {narrow!r} at temperature {temperature:g}: does not tend to the value at a point"
        )


def check_estimator(estimator: BaseEstimator, y_true: np.ndarray, predictions: Distribution) -> None:
    """The order of rows does not matter; reduced problems and redraws in bulk give the plain values; settings are values.

    For estimators that use the order (blocks, locations drawn from the rows) this fails by design.

    >>> from calibrant import ECE, Categorical
    >>> check_estimator(ECE(), np.array([0, 1, 1]), Categorical([0.2, 0.7, 0.9]))
    """
    rng = np.random.default_rng(0)
    result = estimator(y_true, predictions)
    value = float(result)
    assert result.n == len(predictions), f"n is {result.n}, not the number of rows"
    assert estimator.least <= value <= estimator.most, f"{value} lies outside of what the estimator says it can be"
    order = rng.permutation(len(predictions))
    shuffled = float(estimator(y_true[order], predictions[order]))
    assert _close(value, shuffled), f"the order of rows matters: {value} and {shuffled}"
    reduced, targets, smaller = estimator.reduce(predictions.as_targets(y_true), predictions.checked())
    assert _close(float(reduced(targets, smaller)), value), "the reduced problem has another value"
    for weights in (None, rng.uniform(0.5, 2, len(predictions))):
        drawn = smaller.sample(rng, 5)
        try:
            slow = EachDraw(reduced, smaller, weights)(drawn)
        except InputError:
            assert weights is not None, "a redraw is refused"
            continue
        assert _close(reduced.given(smaller, weights)(drawn), slow), "redraws in bulk differ from redraws one by one"
    copy = replace(estimator)  # type: ignore[type-var]
    assert copy == estimator, "settings that are equal make different estimators"
    assert hash(copy) == hash(estimator), "equal estimators have different hashes"


def _close(a: Any, b: Any) -> bool:
    return bool(np.allclose(a, b, rtol=1e-10, atol=1e-14))
