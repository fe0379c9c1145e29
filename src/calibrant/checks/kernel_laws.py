"""Kernels are symmetric and positive semi-definite, and their fast and closed forms agree with plain ones."""

from itertools import product
from typing import Any

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import as_array, check_is, check_not_empty
from calibrant.checks.distribution import DIGITS, EDGES, Values, log_prob, mean, quadrature
from calibrant.distributions.base import Distribution
from calibrant.kernels import Kernel
from calibrant.kernels.base import as_points, expectation

N_FREQUENCIES = 4_000
"""Random frequencies of a kernel that is checked."""


def check_kernel(kernel: Kernel, points: np.ndarray, *, rtol: float = 1e-12) -> None:
    """Symmetric and positive semi-definite on these points; parts, diagonal, products and random features agree with the matrix.

    >>> from calibrant.kernels import Gaussian
    >>> check_kernel(Gaussian(1.0), np.linspace(0, 3, 12)[:, None])
    """
    check_is(kernel, Kernel, "kernel", "a kernel")
    check_not_empty(as_array(points, "points"), "points")
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
    frequencies = kernel.frequencies(np.random.default_rng(0), N_FREQUENCIES, points.shape[1])
    if frequencies is NotImplemented:
        return
    phase = points @ frequencies.T
    mean = (np.cos(phase) @ np.cos(phase).T + np.sin(phase) @ np.sin(phase).T) / len(frequencies)
    assert np.abs(mean - matrix).max() < 5 / np.sqrt(len(frequencies)), (
        f"the random frequencies of {kernel!r} are wrong"
    )


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
    cosines = np.cos((x[:, None] - x[None, :])[..., None] * nodes) @ weights
    assert np.abs(cosines - kernel(x[:, None], x[:, None])).max() < 1e-13 * size, f"the spectrum of {kernel!r} is wrong"


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
    check_is(kernel, Kernel, "kernel", "a kernel")
    for name, batch in (("p", p), ("q", q)):
        check_is(batch, Distribution, name, "a distribution such as Normal(0.0, 1.0)")
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
    if drawn.ndim == 2:
        found: Any = NotImplemented
        ordered = batch.quantile(EDGES) is not NotImplemented  # counts, but not classes
        if log_prob(batch, drawn[0]) is not NotImplemented and (ordered or drawn.dtype.kind == "f"):
            found = mean(batch, drawn, values)
        elif ordered:
            found = quadrature(lambda u: values(batch.quantile(np.array([u]))[:, 0]), 1.0)
        if found is not NotImplemented:
            return found, DIGITS * max(1.0, np.abs(found).max())
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
