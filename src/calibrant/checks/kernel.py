"""Kernels are symmetric, positive semi-definite, and agree with their fast forms."""

from itertools import product

import numpy as np

from calibrant._array import to_numpy
from calibrant.kernels import Kernel

WAVES = 4_000
"""Random frequencies of a kernel that is checked."""


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
    waves = kernel.frequencies(np.random.default_rng(0), WAVES, points.shape[1])
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
