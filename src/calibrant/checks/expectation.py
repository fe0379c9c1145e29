"""Closed forms of expected kernels agree with the kernel averaged in another way."""

from typing import Any

import numpy as np

from calibrant._array import to_numpy
from calibrant.checks.density import EDGES
from calibrant.checks.integrals import DIGITS, Values, log_prob, mean, quadrature
from calibrant.distributions.base import Distribution
from calibrant.expectation import expectation
from calibrant.kernels import Kernel
from calibrant.kernels.base import as_points


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
