"""Several tests at once: p-values that stay honest."""

import numpy as np

from calibrant.inference.monte_carlo import rounding_of
from calibrant.typing import ArrayLike


def holm(pvalues: ArrayLike, *, hypotheses: int | None = None) -> np.ndarray:
    """Holm's adjusted p-values: reject those below alpha, and no true hypothesis falls with more than that chance.

    ``hypotheses`` counts all that were considered, if more than those tested; the others count as not rejected.
    Holm (1979).

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(pvalues, dtype=np.float64)
    m = len(p) if hypotheses is None else hypotheses
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * (m - np.arange(len(p))))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1)
    return adjusted


def benjamini_hochberg(pvalues: ArrayLike, *, hypotheses: int | None = None) -> np.ndarray:
    """Benjamini and Hochberg's adjusted p-values: among those below alpha, at most that share is expected to be true.

    Holds for independent tests and for positively dependent ones. ``hypotheses`` as for :func:`holm`.
    Benjamini & Hochberg (1995).

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    array([0.03, 0.04, 0.04])
    """
    p = np.asarray(pvalues, dtype=np.float64)
    m = len(p) if hypotheses is None else hypotheses
    order = np.argsort(-p, kind="stable")
    stepped = np.minimum.accumulate(p[order] * m / np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1)
    return adjusted


def westfall_young(statistics: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """Adjusted p-values of many statistics: ``(1 + #{max T* >= T}) / (m + 1)``, with the largest of all in each of m resamples.

    Reject those up to alpha, and no true hypothesis falls with more than that chance where all are true, exactly for every n;
    dependence between statistics costs nothing. Westfall & Young (1993).

    >>> westfall_young(np.array([0.5, 3.0]), np.array([1.0, 2.0, 0.8]))
    array([1.  , 0.25])
    """
    t, top = np.asarray(statistics, dtype=np.float64), np.sort(np.asarray(largest, dtype=np.float64))
    slack = rounding_of(np.append(top, t.ravel()))
    return (1 + len(top) - np.searchsorted(top, t - slack, side="left")) / (len(top) + 1)
