"""Cosines and sines of many targets at once: the features of kernels that depend on differences.

Angles are counted in quarter turns. The whole ones are taken off in double precision, and short series in single precision give
what is left of them: an eighth of a turn at most, to 1e-7, at any angle.
"""

import numpy as np

from calibrant._compiled.compiling import compiled

LANES = 16
"""Angles are filled up to a multiple of so many, so that all of them become vector instructions."""

HALF_PI = np.float32(np.pi / 2)
ONE, TWO = np.float32(1), np.float32(2)
C2, C4, C6, C8 = np.float32(-1 / 2), np.float32(1 / 24), np.float32(-1 / 720), np.float32(1 / 40320)
S3, S5, S7, S9 = np.float32(-1 / 6), np.float32(1 / 120), np.float32(-1 / 5040), np.float32(1 / 362880)


@compiled
def _cosines_and_sines(points: np.ndarray, quarters: np.ndarray, roots: np.ndarray, out: np.ndarray) -> None:
    """Of points ``(m, n, d)``, and quarter turns per unit ``(d, a multiple of LANES)``."""
    m, n, d = points.shape
    half = len(roots)
    angle = np.empty(quarters.shape[1])
    cosine, sine = np.empty(len(angle), np.float32), np.empty(len(angle), np.float32)
    for i in range(n):
        for j in range(m):
            angle[:] = 0.0
            for axis in range(d):
                at, per_unit = points[j, i, axis], quarters[axis]
                for q in range(len(angle)):
                    angle[q] += at * per_unit[q]
            for q in range(len(angle)):
                turn = angle[q] - 4.0 * np.floor(0.25 * angle[q] + 0.5)
                whole = np.floor(turn + 0.5)
                r, k = np.float32(turn - whole) * HALF_PI, np.float32(whole)  # k is -2, -1, 0, 1 or 2
                x = r * r
                c = ONE + x * (C2 + x * (C4 + x * (C6 + x * C8)))
                s = r + r * x * (S3 + x * (S5 + x * (S7 + x * S9)))
                even, odd = ONE - abs(k), k * (TWO - abs(k))
                cosine[q] = even * c - odd * s
                sine[q] = even * s + odd * c
            for q in range(half):
                out[i, j, q] = cosine[q] * roots[q]
                out[i, j, half + q] = sine[q] * roots[q]


def cosines_and_sines(points: np.ndarray, frequencies: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """Cosines, then sines, of ``<frequency, point>`` times a root each; ``(n, m, 2 h)`` in single precision.

    Points ``(m, n)`` with frequencies ``(h,)``, or ``(m, n, d)`` with ``(h, d)``.

    >>> cosines_and_sines(np.array([[0.0, np.pi / 2]]), np.array([1.0, 2.0]), np.ones(2)).round(6) + 0.0
    array([[[ 1.,  1.,  0.,  0.]],
    <BLANKLINE>
           [[ 0., -1.,  1.,  0.]]], dtype=float32)
    """
    half = len(roots)
    quarters = np.zeros((1 if frequencies.ndim == 1 else frequencies.shape[1], -(-half // LANES) * LANES))
    quarters[:, :half] = frequencies.T / (np.pi / 2)
    m, n = points.shape[:2]
    out = np.empty((n, m, 2 * half), dtype=np.float32)
    _cosines_and_sines(
        np.ascontiguousarray(points, dtype=np.float64).reshape(m, n, -1), quarters, roots.astype(np.float32), out
    )
    return out
