"""Conformance checks, for our own suite and for anyone who adds a kernel, a family, an estimator.

Each function raises ``AssertionError`` with words where something does not hold.
"""

from typing import Any

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.base import Distribution
from calibrant.estimators.base import BaseEstimator, EachDraw
from calibrant.expectation import expectation
from calibrant.kernels import Kernel


def check_kernel(kernel: Kernel, points: np.ndarray, *, rtol: float = 1e-12) -> None:
    """Symmetric and positive semi-definite on these points; fast products agree with the matrix.

    >>> from calibrant.kernels import Gaussian
    >>> check_kernel(Gaussian(1.0), np.linspace(0, 3, 12)[:, None])
    """
    matrix = to_numpy(kernel(points, points))
    size = float(np.abs(matrix).max()) or 1.0
    assert np.allclose(matrix, matrix.T, rtol=rtol, atol=rtol * size), f"{kernel!r} is not symmetric"
    least = float(np.linalg.eigvalsh((matrix + matrix.T) / 2)[0])
    assert least > -1e-10 * size * len(points), f"{kernel!r} is not positive semi-definite: eigenvalue {least:.3g}"
    if points.shape[1] == 1:
        _check_product(kernel, np.sort(points[:, 0]), rtol)
        _check_spectrum(kernel, np.sort(points[:, 0]))
    squared = kernel.squared()
    if squared is not NotImplemented:
        assert np.allclose(squared(points, points), matrix**2, rtol=rtol), f"the square of {kernel!r} is wrong"


def _check_product(kernel: Kernel, x: np.ndarray, rtol: float) -> None:
    v = np.random.default_rng(0).normal(size=(len(x), 2))
    for diagonal in (True, False):
        fast = kernel.product(x, v, diagonal=diagonal)
        if fast is NotImplemented:
            return
        matrix = kernel(x[:, None], x[:, None]) * (1 if diagonal else 1 - np.eye(len(x)))
        limit = 10 * rtol * np.abs(matrix).sum(axis=1).max()
        assert np.abs(fast - matrix @ v).max() <= limit, f"the fast product of {kernel!r} is wrong"


def _check_spectrum(kernel: Kernel, x: np.ndarray) -> None:
    spectrum = kernel.spectrum(float(x[-1] - x[0]))
    if spectrum is NotImplemented:
        return
    nodes, weights = spectrum
    waves = np.cos((x[:, None] - x[None, :])[..., None] * nodes) @ weights
    assert np.abs(waves - kernel(x[:, None], x[:, None])).max() < 1e-13, f"the spectrum of {kernel!r} is wrong"


def check_distribution(family: type[Distribution], rng: np.random.Generator, *, n: int = 6) -> None:
    """Rows, targets, draws; the density, the distribution function, quantiles and waves against the draws.

    >>> from calibrant import Normal
    >>> check_distribution(Normal, np.random.default_rng(0))
    """
    batch = family.example(rng, n)
    assert len(batch) == n, "len() is not the number of rows"
    assert len(batch[1:3]) == 2, "a slice has the wrong length"
    draws = batch.sample(rng, 40_000)
    assert draws.shape[:2] == (40_000, n), f"sample gives {draws.shape}"
    assert np.array_equal(to_numpy(batch.as_targets(draws[0])), draws[0]), "a draw is no valid target"
    one = batch[2:3].sample(rng, 5)
    assert one.shape[:2] == (5, 1), "rows cannot be drawn alone"
    points = batch.point(batch.as_targets(draws[0]))
    if points is not NotImplemented:
        assert len(points) == n, "point() gives the wrong number of rows"
    if draws.ndim == 2:
        _check_real(batch, draws)


def _check_real(batch: Distribution, draws: np.ndarray) -> None:
    """One-dimensional real targets."""
    error = 5 / np.sqrt(len(draws))
    middle = np.median(draws, axis=0)
    cdf = batch.cdf(middle)
    if cdf is not NotImplemented:
        seen = (draws <= middle).mean(axis=0)
        assert np.abs(cdf - seen).max() < error, "cdf does not agree with the draws"
    quantiles = batch.quantile(np.array([0.25, 0.5, 0.9]))
    if quantiles is not NotImplemented:
        below = np.stack([(draws <= quantiles[:, j]).mean(axis=0) for j in range(3)], axis=1)
        strictly = np.stack([(draws < quantiles[:, j]).mean(axis=0) for j in range(3)], axis=1)
        levels = np.array([0.25, 0.5, 0.9])
        assert np.all((strictly - error < levels) & (levels < below + error)), "quantile does not agree with the draws"
    waves = batch.cf(np.array([0.3, 1.0]))
    if waves is not NotImplemented:
        phase = draws[:, :, None] * np.array([0.3, 1.0])
        assert np.abs(waves[0] - np.cos(phase).mean(axis=0)).max() < error, "cf (real) does not agree with the draws"
        assert np.abs(waves[1] - np.sin(phase).mean(axis=0)).max() < error, (
            "cf (imaginary) does not agree with the draws"
        )


def check_expectation(
    kernel: Kernel, p: Distribution, q: Distribution, rng: np.random.Generator, *, draws: int = 20_000
) -> None:
    """The closed form against the mean of the kernel over independent draws; the four kinds of terms.

    >>> from calibrant import Normal
    >>> from calibrant.kernels import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> check_expectation(Gaussian(1.0), Normal.example(rng, 2), Normal.example(rng, 3), rng)
    """
    for left, right in ((p, q), (p, q.point(_targets(q, rng))), (p.point(_targets(p, rng)), q)):
        value = expectation(kernel, left, right)
        assert value is not NotImplemented, f"{kernel!r} has no closed form for {left!r} and {right!r}"
        assert value.shape == (len(left), len(right)), f"shape {value.shape}"
        for i in range(len(left)):
            for j in range(len(right)):
                terms = _paired(kernel, _draw(left[i : i + 1], rng, draws), _draw(right[j : j + 1], rng, draws))
                error = 5 * terms.std() / np.sqrt(draws) + 1e-12
                assert abs(value[i, j] - terms.mean()) < error, f"{kernel!r}, {left!r}, {right!r}: {value[i, j]}"


def _targets(batch: Distribution, rng: np.random.Generator) -> Any:
    return batch.as_targets(batch.sample(rng, 1)[0])


def _draw(batch: Distribution, rng: np.random.Generator, size: int) -> np.ndarray:
    return batch.sample(rng, size)[:, 0].reshape(size, -1)


def _paired(kernel: Kernel, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``k(x_i, y_i)``, from small blocks."""
    blocks = [np.diagonal(kernel(x[i : i + 64], y[i : i + 64])) for i in range(0, len(x), 64)]
    return np.concatenate(blocks)


def check_estimator(estimator: BaseEstimator, y_true: np.ndarray, predictions: Distribution) -> None:
    """The order of rows does not matter; redraws in bulk equal redraws one by one; settings travel.

    >>> from calibrant import ECE, Categorical
    >>> check_estimator(ECE(), np.array([0, 1, 1]), Categorical([0.2, 0.7, 0.9]))
    """
    value = float(estimator(y_true, predictions))
    order = np.random.default_rng(0).permutation(len(predictions))
    shuffled = float(estimator(y_true[order], predictions[order]))
    assert np.isclose(value, shuffled, rtol=1e-10, atol=1e-14), f"the order of rows matters: {value} and {shuffled}"
    reduced, _, smaller = estimator.reduce(y_true, predictions)
    drawn = smaller.sample(np.random.default_rng(1), 5)
    fast, slow = reduced.given(smaller, None)(drawn), EachDraw(reduced, smaller, None)(drawn)
    assert np.allclose(fast, slow, rtol=1e-10, atol=1e-14), "redraws in bulk differ from redraws one by one"
    assert hash(estimator) is not None, "estimators are values"
