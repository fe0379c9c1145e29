"""Cosines and sines at many evenly spaced frequencies, from those at few."""

import math

import numpy as np

from calibrant._array import namespace
from calibrant.distributions.base import matched
from calibrant.typing import Array

FEW = 32
"""Up to so many frequencies are taken as they are."""


def as_sums(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers a and b whose sums ``a_i + b_j``, in rows, begin with the frequencies; few of each if those are evenly spaced.

    >>> as_sums(np.arange(100.0))
    (array([ 0., 10., 20., 30., 40., 50., 60., 70., 80., 90.]), array([0., 1., 2., 3., 4., 5., 6., 7., 8., 9.]))
    >>> as_sums(np.array([1.0, 2.0, 4.0]))
    (array([1., 2., 4.]), array([0.]))
    """
    m = len(w)
    step = (w[-1] - w[0]) / max(m - 1, 1)
    if m <= FEW or np.abs(w - w[0] - step * np.arange(m)).max() > 1e-14 * np.abs(w).max():
        return w, np.zeros(1)
    size = math.isqrt(m)
    return w[0] + step * size * np.arange(-(-m // size)), step * np.arange(size)


def cosines_and_sines(y: Array, w: np.ndarray) -> tuple[Array, Array]:
    """``cos(w y)`` and ``sin(w y)``, ``(n, m)`` each, for y ``(n,)`` and frequencies ``(m,)``.

    >>> cosine, sine = cosines_and_sines(np.array([1.0]), np.pi * np.arange(100))
    >>> np.abs(cosine - (-1.0) ** np.arange(100)).max() < 1e-12
    np.True_
    """
    xp = namespace(y)
    phases = [y[:, None] * matched(part, y)[None, :] for part in as_sums(w)]
    if phases[1].shape[1] == 1:
        return xp.cos(phases[0]), xp.sin(phases[0])
    (c, s), (d, t) = ((xp.cos(phase), xp.sin(phase)) for phase in phases)
    c, s, d, t = c[:, :, None], s[:, :, None], d[:, None, :], t[:, None, :]
    parts = c * d - s * t, s * d + c * t
    return tuple(xp.reshape(part, (y.shape[0], -1))[:, : len(w)] for part in parts)
