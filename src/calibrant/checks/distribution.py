"""Families of distributions agree with their own draws, and with integrals of their densities."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution

Values: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""A function of targets, one per row of a batch; rows are the last axis of what it gives."""


DIGITS = 1e-6
"""What integrals are held to; adaptive quadrature is asked for a thousand times less, as kinks may deceive it."""


def log_prob(batch: Distribution, y: np.ndarray) -> Any:
    """Log densities, where the family has them."""
    try:
        return batch.log_prob(y)
    except InputError:
        return NotImplemented


def integral(batch: Distribution, draws: np.ndarray, f: Values, edge: np.ndarray, side: int) -> np.ndarray:
    """``integral f(y) dP(y)`` of each row on one side of its edge; the edge itself belongs to the lower side.

    By the density, and by the probabilities of single values among the kinks.
    """
    by_density = on_one_side(batch, draws, lambda y: f(y) * np.exp(batch.log_prob(y)), edge, side)
    return by_density + _atoms(batch, f, edge, side)


def on_one_side(batch: Distribution, draws: np.ndarray, f: Values, edge: np.ndarray, side: int) -> np.ndarray:
    """``integral f(y) dy`` of each row on one side of its edge, piece by piece where the batch has kinks."""
    unit = np.quantile(draws, 0.75, axis=0) - np.quantile(draws, 0.25, axis=0)
    unit = np.where(unit > 0, unit, 1.0)  # where most draws are one value
    distances = np.sort(np.maximum(side * (_kinks(batch).T - edge) / unit, 0), axis=0)
    starts = np.concatenate([np.zeros((1, len(batch))), distances])

    def value(t: np.ndarray) -> np.ndarray:
        return f(edge + side * t * unit) * unit

    total = quadrature(lambda t: value(starts[-1] + t), np.inf)
    for start, width in zip(starts, np.diff(starts, axis=0), strict=False):
        total = total + quadrature(lambda t, start=start, width=width: width * value(start + t * width), 1.0)  # type: ignore[misc]
    return total


def _kinks(batch: Distribution) -> np.ndarray:
    """Where densities jump, ``(n, k)`` in rising order: at values that the family names, and where its range ends."""
    ends = batch.quantile(np.array([0.0, 1.0]))
    parts = [part for part in (batch.kinks, ends) if part is not NotImplemented]
    columns = [column for part in parts for column in part.T if np.isfinite(column).all()]
    return np.sort(np.stack(columns, axis=1), axis=1) if columns else np.empty((len(batch), 0))


def _atoms(batch: Distribution, f: Values, edge: np.ndarray, side: int) -> Any:
    """``sum f(y) P(Y = y)`` over the kinks on one side."""
    total: Any = 0.0
    values = _kinks(batch).T
    for i, y in enumerate(values):
        is_new = np.ones(len(y), dtype=bool) if i == 0 else y > values[i - 1]
        mass = (batch.cdf(y) - batch.below(y)) * (is_new & (y > edge if side > 0 else y <= edge))
        total = total + f(y) * mass
    return total


def quadrature(f: Callable[[float], np.ndarray], end: float) -> np.ndarray:
    """``integral f`` from zero to the end, however far."""
    from scipy.integrate import quad_vec

    points = [x for x in np.arange(0.25, 4, 0.25) if x < end]
    return quad_vec(f, 0, end, epsabs=DIGITS / 1000, epsrel=DIGITS / 1000, norm="max", points=points)[0]


def mean(batch: Distribution, draws: np.ndarray, f: Values) -> np.ndarray:
    """``E f(Y)`` of each row by its density, or by its masses where draws are counts."""
    if draws.dtype.kind in "iu":
        return _sum(batch, draws, f)
    edge = np.quantile(draws, 0.3, axis=0)  # a median is where densities have their kinks
    return integral(batch, draws, f, edge, -1) + integral(batch, draws, f, edge, 1)


def _sum(batch: Distribution, draws: np.ndarray, f: Values) -> np.ndarray:
    """Over whole numbers, as far beyond the draws as these reach."""
    low, high = int(draws.min()), int(draws.max())
    outcomes = [np.full(len(batch), k) for k in range(2 * low - high, 2 * high - low + 1)]
    return sum(f(y) * np.exp(batch.log_prob(y)) for y in outcomes)


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
    """Vectors: ``E q(Y) / p(Y) = 1`` for normal densities q where draws are dense, on both sides of the densest.

    Of compositions, whose parts sum to one, densities are those of all parts but the last.
    """
    for i in range(len(batch)):
        y, logs = draws[:, i], batch[i : i + 1].log_prob(draws[:, i : i + 1])[:, 0]
        y = y[:, : np.linalg.matrix_rank(np.cov(y.T))]
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


MIN_DIFFERENT = 1_000
"""A family of which draws have fewer different values than this is one of single values with probabilities."""


def check_moments(batch: Distribution, draws: np.ndarray) -> None:
    """``mean``, ``std``, ``below`` and ``crps``, as far as the family has them."""
    numbers = draws.astype(np.float64)
    if batch.mean is not NotImplemented:
        _check_mean(batch, numbers, to_numpy(batch.mean))
        if batch.std is not NotImplemented:
            _check_std(batch, numbers, to_numpy(batch.std))
    if draws.ndim == 2:
        _check_below(batch, draws)
        _check_crps(batch, draws)


def _has_density(batch: Distribution, draws: np.ndarray) -> bool:
    one = draws.ndim == 2 and len(np.unique(draws[:, 0])) > MIN_DIFFERENT
    return one and log_prob(batch, draws[0]) is not NotImplemented


def _error(values: np.ndarray) -> np.ndarray:
    """Five standard errors of a mean, and more for what happens too seldom to be drawn."""
    return 5 * values.std(axis=0) / np.sqrt(len(values)) + 10 * np.abs(values).max(axis=0) / len(values) + 1e-9


def _check_mean(batch: Distribution, draws: np.ndarray, centre: np.ndarray) -> None:
    assert centre.shape == draws.shape[1:], f"mean has shape {centre.shape}"
    off = draws - centre
    assert np.all(np.abs(off.mean(axis=0)) < _error(off)), "mean does not agree with the draws"
    if _has_density(batch, draws):
        unit = draws.std(axis=0)
        exact = mean(batch, draws, lambda y: (y - centre) / unit)
        assert np.abs(exact).max() < DIGITS, "mean is not the integral of log_prob"


def _check_std(batch: Distribution, draws: np.ndarray, spread: np.ndarray) -> None:
    assert spread.shape == draws.shape[1:], f"std has shape {spread.shape}"
    centre = to_numpy(batch.mean)
    squares = (draws - centre) ** 2
    some = np.isfinite(spread)
    close = np.abs(squares.mean(axis=0) - spread**2) < _error(squares)
    assert np.all(close[some]), "std does not agree with the draws"
    if _has_density(batch, draws) and np.all(some):
        exact = mean(batch, draws, lambda y: ((y - centre) / spread) ** 2)
        assert np.abs(exact - 1).max() < DIGITS, "std is not the integral of log_prob"


def _check_below(batch: Distribution, draws: np.ndarray) -> None:
    below, upto = batch.below(draws[:3]), batch.cdf(draws[:3])
    if below is NotImplemented:
        return
    assert upto is not NotImplemented, "below without cdf"
    assert np.all((below <= upto) & (below >= 0)), "more lies below a value than up to it"
    for y, less, most in zip(draws[:3], below, upto, strict=True):
        for probability, seen in ((less, draws < y), (most, draws <= y)):
            off = np.abs(probability - seen.mean(axis=0)) - frequency_error(probability, draws)
            assert np.all(off < 1 / len(draws)), "below and cdf do not agree with the draws"


def _check_crps(batch: Distribution, draws: np.ndarray) -> None:
    scores: Any = batch.crps(draws[:3])
    if scores is NotImplemented:
        return
    numbers, half = draws.astype(np.float64), len(draws) // 2
    spread = np.abs(numbers[:half] - numbers[half:]) / 2
    for y, score in zip(numbers[:3], scores, strict=True):
        far = np.abs(numbers - y)
        off = np.abs(far.mean(axis=0) - spread.mean(axis=0) - score)
        assert np.all(off < _error(far) + _error(spread)), "crps does not agree with the draws"
    alone = np.stack([batch.crps(y) for y in draws[:3]])
    assert np.allclose(scores, alone, rtol=1e-12, atol=1e-12), "crps of a stack of targets is not that of its members"
    if batch.cdf(draws[0]) is not NotImplemented:
        wanted, error = _integrated(batch, draws)
        assert np.all(np.abs(wanted - scores[0]) < error * numbers.std(axis=0)), "crps is not the integral of cdf"


def _integrated(batch: Distribution, draws: np.ndarray) -> tuple[np.ndarray, float]:
    """``integral (F(x) - [y <= x])^2 dx`` for the first draw, and the error it may have in standard deviations."""
    y = draws[0].astype(np.float64)
    if _has_density(batch, draws):
        lower = on_one_side(batch, draws, lambda x: batch.cdf(x) ** 2, y, -1)
        return lower + on_one_side(batch, draws, lambda x: (1 - batch.cdf(x)) ** 2, y, 1), DIGITS
    wanted = []
    for i in range(len(batch)):
        values = np.unique(draws[:, i])  # jumps that are not drawn are rare
        steps = to_numpy(batch[i : i + 1].cdf(values[:, None]))[:-1, 0] - (values[:-1] >= draws[0, i])
        wanted.append(steps**2 @ np.diff(values.astype(np.float64)))
    return np.array(wanted), 1e-3


DRAWS = 40_000
"""Draws of a family that is checked."""


def check_distribution(family: type[Distribution], rng: np.random.Generator, *, n: int = 6) -> None:
    """Rows, targets, draws; densities, levels, moments, scores, transforms and tempering against draws and each other.

    >>> from calibrant import Normal
    >>> check_distribution(Normal, np.random.default_rng(0))
    """
    if not (isinstance(family, type) and issubclass(family, Distribution)):
        raise InputError(f"family must be a class of distributions such as Normal; got a {type(family).__name__}")
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
    _check_characteristic_function(batch, draws)
    _check_shift(batch, draws, rng)
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


def _check_shift(batch: Distribution, draws: np.ndarray, rng: np.random.Generator) -> None:
    """Predictions that are moved are those of targets that are moved, not of their logarithms."""
    by = 1.5 if draws.ndim == 2 else np.linspace(0.5, 1.5, draws.shape[2])
    moved = NotImplemented if batch.position is NotImplemented else batch.shifted(by)
    if moved is NotImplemented:
        return
    assert np.allclose(to_numpy(moved.position), to_numpy(batch.position) + by), "shifted does not move position"
    again, unit = moved.sample(rng, len(draws)) - by, draws.std(axis=0) + 1e-12
    off = [np.abs(f(again / unit).mean(axis=0) - f(draws / unit).mean(axis=0)).max() for f in (np.cos, np.sin)]
    assert max(off) < 5 * np.sqrt(2 / len(draws)), "shifted is not the law of Y + by"


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


def _check_characteristic_function(batch: Distribution, draws: np.ndarray) -> None:
    frequencies = np.array([0.3, 1.0])
    w = frequencies if draws.ndim == 2 else frequencies[:, None] * np.linspace(0.5, 1, draws.shape[2])
    parts = batch.cf(w)
    if parts is NotImplemented:
        return
    found = np.stack([to_numpy(part) for part in parts])
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
